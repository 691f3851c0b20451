//! Processes and threads that run already.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::target::wait_for;
use bpfprof_tests::truth::function_time_holds;
use bpfprof_tests::{Bpfprof, Folded, Report, Target, host};

#[test]
fn a_running_process() -> Result<()> {
    let target = Target::workload("spin", &["alpha", "30"])?;
    let beside = Target::workload("spin", &["beta", "30"])?;
    let folded = sample_a_second(&["--pid", &target.pid()])?;
    drop(beside);
    ensure!(mostly(&folded, &["spin_alpha"]), "not the target's work: {folded:?}");
    assert_eq!(folded.weight_of("spin_beta"), 0);
    assert_eq!(folded.weight_of_comm("spin"), folded.weight());
    Ok(())
}

#[test]
fn several_processes() -> Result<()> {
    let (one, two) =
        (Target::workload("spin", &["alpha", "30"])?, Target::workload("spin", &["beta", "30"])?);
    let folded = sample_a_second(&["--pid", &format!("{},{}", one.pid(), two.pid())])?;
    ensure!(mostly(&folded, &["spin_alpha", "spin_beta"]), "{folded:?}");
    Ok(())
}

#[test]
fn children_that_are_there_already() -> Result<()> {
    let parent = Target::workload("spin", &["alpha,beta", "30", "--fork", "2"])?;
    parent.wait_for_children(2)?;
    let folded = sample_a_second(&["--pid", &parent.pid()])?;
    ensure!(mostly(&folded, &["spin_alpha", "spin_beta"]), "{folded:?}");
    // The parent only waits.
    let run = Bpfprof::clock(["--pid", &parent.pid(), "--no-children", "-d", "500ms"]).run()?;
    run.expect_refusal(1, &["no sample"])
}

#[test]
fn children_that_come_later() -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"sleep 2; "$0" gamma 0.4; true"#]).arg(host::workload("spin"));
    let shell = Target::start(shell, "sh")?;
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    Bpfprof::clock(["--pid", &shell.pid()]).output(&json).succeed()?;
    assert!(shell.wait()?.success());
    function_time_holds(&Report::read(&json)?, "spin_gamma", Duration::from_millis(400))
}

#[test]
fn one_thread_of_two() -> Result<()> {
    let target = Target::workload("spin", &["alpha,beta", "30", "--threads", "2"])?;
    let folded = sample_a_second(&["--tid", &target.thread("alpha")?])?;
    ensure!(mostly(&folded, &["spin_alpha"]), "{folded:?}");
    assert_eq!(folded.weight_of_comm("alpha"), folded.weight());
    Ok(())
}

#[test]
fn both_threads_of_a_process() -> Result<()> {
    let target = Target::workload("spin", &["alpha,beta", "30", "--threads", "2"])?;
    target.thread("beta")?;
    let folded = sample_a_second(&["--pid", &target.pid()])?;
    ensure!(mostly(&folded, &["spin_alpha", "spin_beta"]), "{folded:?}");
    Ok(())
}

#[test]
fn the_end_of_the_target_ends_the_run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let outputs = ["x.folded", "x.svg", "x.json"].map(|name| folder.path().join(name));
    let target = Target::workload("spin", &["alpha", "3"])?;
    let run = outputs.iter().fold(Bpfprof::clock(["--pid", &target.pid()]), |run, file| run.output(file));
    // Without a duration: only the target ends it.
    run.succeed()?;
    let folded = Folded::read(&outputs[0])?;
    ensure!(mostly(&folded, &["spin_alpha"]), "{folded:?}");
    assert_eq!(Report::read(&outputs[2])?.header.weight, folded.weight());
    assert!(fs::read_to_string(&outputs[1])?.trim_end().ends_with("</svg>"));
    Ok(())
}

#[test]
fn the_end_of_the_thread_ends_the_run() -> Result<()> {
    let target = Target::workload("spin", &["alpha,beta", "3", "--threads", "2"])?;
    let folded = Bpfprof::clock(["--tid", &target.thread("beta")?]).succeed()?.folded()?;
    ensure!(mostly(&folded, &["spin_beta"]), "{folded:?}");
    Ok(())
}

#[test]
fn a_new_image_of_a_running_process() -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"sleep 2; exec "$0" gamma 0.4"#]).arg(host::workload("spin"));
    let shell = Target::start(shell, "sh")?;
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    Bpfprof::clock(["--pid", &shell.pid()]).output(&json).succeed()?;
    function_time_holds(&Report::read(&json)?, "spin_gamma", Duration::from_millis(400))
}

#[test]
fn a_program_whose_file_is_gone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("fleeting");
    fs::copy(host::workload("spin"), &copy)?;
    let mut command = Command::new(&copy);
    command.args(["alpha", "30"]);
    let target = Target::start(command, "fleeting")?;
    fs::remove_file(&copy)?;
    let folded = sample_a_second(&["--pid", &target.pid()])?;
    ensure!(mostly(&folded, &["spin_alpha"]), "{folded:?}");
    Ok(())
}

#[test]
fn a_program_in_another_mount_and_process_namespace() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Only inside does the folder hold the program.
    let script = r#"mount -t tmpfs none "$1" && cp "$2" "$1/inside" && exec "$1/inside" alpha 30"#;
    let arguments = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"];
    let mut command = Command::new("unshare");
    command.args(arguments).arg(folder.path()).arg(host::workload("spin"));
    if !Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "true"])
        .status()
        .is_ok_and(|done| done.success())
    {
        let test = "attaching::a_program_in_another_mount_and_process_namespace";
        return host::skip(test, "`unshare` makes no namespaces here");
    }
    let target = Target::start(command, "unshare")?;
    target.wait_for_children(1)?;
    wait_for("the program inside", || {
        let inside = fs::read_to_string(format!("/proc/{0}/task/{0}/children", target.id())).ok()?;
        let comm = fs::read_to_string(format!("/proc/{}/comm", inside.trim())).ok()?;
        (comm.trim_end() == "inside").then_some(())
    })?;
    let folded = sample_a_second(&["--pid", &target.pid()])?;
    ensure!(mostly(&folded, &["spin_alpha"]), "{folded:?}");
    Ok(())
}

#[test]
fn every_process_of_the_machine() -> Result<()> {
    let (_one, _two) =
        (Target::workload("spin", &["alpha", "30"])?, Target::workload("spin", &["beta", "30"])?);
    let folded = sample_a_second(&["--all"])?;
    assert!(folded.weight_of("spin_alpha") > 0 && folded.weight_of("spin_beta") > 0, "{folded:?}");
    assert_eq!(folded.weight_where(|line| line.comm.starts_with("swapper")), 0, "idle CPUs are left out");
    Ok(())
}

/// Folded stacks from stdout.
fn sample_a_second(target: &[&str]) -> Result<Folded> {
    Bpfprof::clock(target).args(["-d", "1s"]).succeed()?.folded()
}

/// Whether each function was seen, and little else.
fn mostly(folded: &Folded, functions: &[&str]) -> bool {
    let of_each: Vec<u64> = functions.iter().map(|function| folded.weight_of(function)).collect();
    of_each.iter().all(|weight| *weight > 0) && of_each.iter().sum::<u64>() * 10 > folded.weight() * 9
}

/// Each would delay who waits for it by `lease-break-time`, one after the other.
#[test]
fn leased_files_delay_nothing() -> Result<()> {
    let Some(leases) = CProgram::compile_with("leases", &["-O1"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(leases.path());
    command.arg(folder.path()).args(["60000", "8"]);
    let target = Target::start(command, "leases")?;
    let begun = Instant::now();
    let folded = Bpfprof::clock(["--all", "-d", "1s", "--user-only"]).succeed()?.folded()?;
    let break_time: u64 = fs::read_to_string("/proc/sys/fs/lease-break-time")?.trim().parse()?;
    ensure!(folded.weight_of_comm("leases") > 0, "{folded:?}");
    // Two of the eight would take longer.
    ensure!(
        begun.elapsed() < Duration::from_secs(2 * break_time),
        "it waited for leases: {:?}",
        begun.elapsed()
    );
    drop(target);
    Ok(())
}
