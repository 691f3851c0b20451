//! What `report` prints from a file is what the run printed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Finished, Report, host};

/// A run with a counter, that forks and has threads, and its file.
fn recorded(folder: &Path) -> Result<Finished> {
    let outputs = ["run.pb.gz", "run.json", "run.svg", "run.html", "run.folded"];
    let run = outputs.iter().fold(Bpfprof::clock(["--counters", "page-faults", "-o", "-"]), |run, output| {
        run.output(&folder.join(output))
    });
    run.shell("spin alpha,beta 0.4 --threads 2; spin gamma 0.3 --fork 2").succeed()
}

fn report<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Bpfprof {
    Bpfprof::new(["report"]).args(arguments)
}

/// Header and table, without the lines about files.
fn told(run: &Finished) -> String {
    let lines = run.stderr.lines().filter(|line| !line.starts_with("bpfprof: wrote"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn it_prints_what_the_run_printed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = recorded(folder.path())?;
    let file = folder.path().join("run.pb.gz");
    let again = ["again.pb.gz", "again.json", "again.svg", "again.html", "again.folded"];
    let outputs = again
        .iter()
        .fold(report([&file]).args(["-o", "-"]), |report, output| report.output(&folder.path().join(output)));
    let shown = outputs.succeed()?;
    assert_eq!(shown.stdout, run.stdout);
    assert_eq!(told(&shown), told(&run));
    for again in again {
        let before = fs::read(folder.path().join(again.replace("again", "run")))?;
        ensure!(before == fs::read(folder.path().join(again))?, "{again} is not what the run wrote");
    }
    Ok(())
}

#[test]
fn parts_of_it_add_up() -> Result<()> {
    let folder = tempfile::tempdir()?;
    recorded(folder.path())?;
    let file = folder.path().join("run.pb.gz");
    let whole = report([&file]).succeed()?.folded()?;
    let weight = |arguments: &[&str]| -> Result<u64> {
        let shown = report([&file]).args(arguments).succeed()?;
        ensure!(shown.stderr.contains("filtered by"), "the header does not say what was left out");
        Ok(shown.folded()?.weight())
    };
    assert_eq!(weight(&["--focus", "spin_alpha$"])?, whole.weight_of("spin_alpha"));
    let others = weight(&["--ignore", "spin_alpha$"])?;
    assert_eq!(others, whole.weight() - whole.weight_of("spin_alpha"));
    assert_eq!(weight(&["--comm", "beta"])?, whole.weight_of_comm("beta"));
    assert!(whole.weight_of_comm("beta") > 0);
    let nothing = report([&file]).args(["--comm", "nobody"]).run()?;
    nothing.expect_refusal(1, &["no sample"])
}

#[test]
fn one_function_stands_between_its_neighbours() -> Result<()> {
    let folder = tempfile::tempdir()?;
    recorded(folder.path())?;
    let file = folder.path().join("run.pb.gz");
    let table = Report::read(&folder.path().join("run.json"))?;
    let shown = report([&file]).args(["--callers", "spin_gamma", "--json"]).succeed()?;
    let json: serde_json::Value = serde_json::from_str(&shown.stdout)?;
    let weight = |value: &serde_json::Value| value["weight"].as_u64().context("no weight");
    let sum = |list: &serde_json::Value| -> Result<u64> {
        list.as_array().context("no list")?.iter().map(weight).sum()
    };
    let total = table.function("spin_gamma")?.total.weight;
    assert_eq!(sum(&json["callers"])?, total);
    assert_eq!(sum(&json["callees"])? + weight(&json["self"])?, total);
    let text = report([&file]).args(["--callers", "spin_gamma"]).succeed()?.stdout;
    assert!(text.contains("called by") && text.contains("spin::spin_gamma"), "{text}");
    report([&file]).args(["--callers", "nothing_like_it"]).run()?.expect_refusal(1, &["nothing_like_it"])
}

#[test]
fn no_root_is_needed() -> Result<()> {
    const TEST: &str = "report::no_root_is_needed";
    if Command::new("setpriv").arg("--version").output().is_err() {
        return host::skip(TEST, "`setpriv` (package util-linux) is not installed");
    }
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    recorded(folder.path())?;
    let (copy, file) = (folder.path().join("bpfprof"), folder.path().join("run.pb.gz"));
    // The build folder may be closed to others.
    fs::copy(host::bpfprof(), &copy).context("copying bpfprof")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy)
        .arg("report")
        .arg(&file);
    assert!(Bpfprof::through(command).succeed()?.folded()?.weight_of("spin_gamma") > 0);
    Ok(())
}

#[test]
fn what_is_no_profile_is_refused_in_words() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x");
    for (content, word) in [(&b"hello\n"[..], "neither"), (b"", "no samples"), (b"PERFILE2", "perf script")] {
        fs::write(&file, content)?;
        report([&file]).run()?.expect_refusal(1, &[word])?;
    }
    report([folder.path().join("missing")]).run()?.expect_refusal(1, &["missing", "no such file"])
}
