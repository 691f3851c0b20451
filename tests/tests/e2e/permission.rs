//! Without privileges: what is missing, and the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Report, Target, host};
use rustix::process::Signal;

/// Capabilities that sampling needs (`linux/capability.h`): CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, KILL, IPC_LOCK, SYS_PTRACE, SYS_NICE, SYSLOG,
/// PERFMON, BPF, CHECKPOINT_RESTORE.
const FOR_SAMPLING: [u32; 11] = [0, 1, 2, 5, 14, 19, 23, 34, 38, 39, 40];

#[test]
fn while_it_samples_it_holds_no_more_than_that_needs() -> Result<()> {
    let target = Target::workload("spin", &["alpha", "60"])?;
    let mut run = Bpfprof::clock(["--pid", &target.pid()]).start()?;
    run.sample_for(Duration::from_millis(300))?;
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid().as_raw_nonzero()))?;
    let needed = FOR_SAMPLING.iter().fold(0_u64, |set, capability| set | 1 << capability);
    for set in ["CapEff:", "CapPrm:"] {
        let held = status.lines().find_map(|line| line.strip_prefix(set)).context("no capabilities")?;
        let held = u64::from_str_radix(held.trim(), 16)?;
        ensure!(held & !needed == 0 && held != 0, "{set} {held:x}");
    }
    run.signal(Signal::INT)?;
    assert_eq!(run.wait()?.code(), Some(0));
    Ok(())
}

/// The systemd unit gives it these alone.
#[test]
fn the_capabilities_of_the_unit_are_enough() -> Result<()> {
    const TEST: &str = "permission::the_capabilities_of_the_unit_are_enough";
    if Command::new("setpriv").arg("--version").output().is_err() {
        return host::skip(TEST, "`setpriv` (package util-linux) is not installed");
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd/bpfprof@.service");
    let unit = fs::read_to_string(unit).context("reading the unit")?;
    let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = line.context("the unit bounds no capabilities")?.split_whitespace();
    let bounds: Vec<String> =
        names.filter_map(|name| Some(format!("+{}", name.strip_prefix("CAP_")?.to_lowercase()))).collect();
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", &format!("-all,{}", bounds.join(","))]).arg(host::bpfprof());
    let target = Target::workload("spin", &["alpha", "60"])?;
    let run = Bpfprof::through(command).args(["-e", "cpu-clock", "--all", "-d", "1s"]);
    let (html, json) = (folder.path().join("machine.html"), folder.path().join("machine.json"));
    run.output(&html).output(&json).succeed()?;
    drop(target);
    let report = Report::read(&json)?;
    ensure!(report.header.samples > 200 && html.exists(), "{:?}", report.header);
    let notes = &report.header.notes;
    ensure!(notes.iter().all(|note| !note.contains("have no names")), "{notes:?}");
    Ok(())
}

/// What it launches is not limited by it.
#[test]
fn a_command_keeps_its_own_capabilities() -> Result<()> {
    let ours = fs::read_to_string("/proc/self/status")?;
    let effective = |status: &str| -> Option<String> {
        status.lines().find(|line| line.starts_with("CapEff:")).map(str::to_owned)
    };
    let folder = tempfile::tempdir()?;
    let run = Bpfprof::clock::<&str>([]).output(&folder.path().join("x.json"));
    let run = run.args([
        "--",
        "sh",
        "-c",
        "cat /proc/self/status; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
    ]);
    let run = run.succeed()?;
    assert_eq!(effective(&run.stdout), effective(&ours), "{}", run.stdout);
    Ok(())
}

/// With the capabilities of its file anybody may run it, and must not read what only root may.
#[test]
fn capabilities_of_the_file_read_no_saved_profile() -> Result<()> {
    const TEST: &str = "permission::capabilities_of_the_file_read_no_saved_profile";
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let (copy, secret) = (folder.path().join("bpfprof"), folder.path().join("secret.folded"));
    fs::copy(host::bpfprof(), &copy).context("copying bpfprof")?;
    let set = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep";
    if !Command::new("setcap").arg(set).arg(&copy).status().is_ok_and(|status| status.success()) {
        return host::skip(TEST, "`setcap` (package libcap2-bin) does not work here");
    }
    fs::write(&secret, "app;secret 7\n")?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
    let plain = |subcommand: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).args(subcommand);
        Bpfprof::through(command).args([&secret])
    };
    plain(&["report"]).run()?.expect_refusal(1, &["secret.folded", "ermission denied"])?;
    plain(&["diff"]).args([&secret]).run()?.expect_refusal(1, &["secret.folded", "ermission denied"])?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644))?;
    ensure!(plain(&["report"]).succeed()?.stdout.contains("secret 7"), "what all may read is refused");
    Ok(())
}

const TEST: &str = "permission::a_plain_user_is_told_what_is_missing";

#[test]
fn a_plain_user_is_told_what_is_missing() -> Result<()> {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return host::skip(TEST, "`setpriv` (package util-linux) is not installed");
    }
    // The build folder may be closed to others.
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let copy = folder.path().join("bpfprof");
    fs::copy(host::bpfprof(), &copy).context("copying bpfprof")?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).args(["--", "true"]);
    let run = Bpfprof::through(command).run()?;
    run.expect_refusal(1, &[])?;
    let remedies = ["CAP_BPF", "CAP_PERFMON", "sudo"];
    ensure!(remedies.iter().any(|remedy| run.stderr.contains(remedy)), "no remedy in: {}", run.stderr);
    let advice = Bpfprof::new(["help", "permissions"]).succeed()?.stdout;
    ensure!(advice.contains("setcap") && advice.contains("-m 750"), "{advice}");
    Ok(())
}
