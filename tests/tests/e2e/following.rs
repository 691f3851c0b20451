//! Children and threads of a launched command, each with all of its CPU time.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::truth::function_time_holds;
use bpfprof_tests::{Bpfprof, Folded, Report};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn jobs_of_a_shell() -> Result<()> {
    let (report, folded) = record(|run| run.shell("spin alpha 1 & spin beta 1 & wait"))?;
    function_time_holds(&report, "spin_alpha", Duration::from_secs(1))?;
    function_time_holds(&report, "spin_beta", Duration::from_secs(1))?;
    assert_eq!(
        folded.weight_of("spin_alpha"),
        folded.weight_where(|line| line.comm == "spin" && line.has("spin_alpha"))
    );
    assert_eq!(report.header.lost.not_followed, 0);
    Ok(())
}

#[test]
fn threads() -> Result<()> {
    let (report, folded) = record(|run| run.workload("spin", &["alpha,beta", "1", "--threads", "2"]))?;
    function_time_holds(&report, "spin_alpha", Duration::from_secs(1))?;
    function_time_holds(&report, "spin_beta", Duration::from_secs(1))?;
    for (thread, function) in [("alpha", "spin_alpha"), ("beta", "spin_beta")] {
        let in_it = folded.weight_where(|line| line.comm == thread && line.has(function));
        assert_eq!(in_it, folded.weight_of(function), "{function} ran in the thread {thread} alone");
    }
    Ok(())
}

#[test]
fn forks_of_forks_without_exec() -> Result<()> {
    let arguments = ["alpha,beta", "0.25", "--fork", "2", "--generations", "2"];
    let (report, _) = record(|run| run.workload("spin", &arguments))?;
    // Four processes at the end, two with each name.
    function_time_holds(&report, "spin_alpha", Duration::from_millis(500))?;
    function_time_holds(&report, "spin_beta", Duration::from_millis(500))
}

#[test]
fn a_new_image_by_exec() -> Result<()> {
    let (report, _) = record(|run| run.workload("spin", &["alpha", "0.5", "--exec", "gamma"]))?;
    function_time_holds(&report, "spin_alpha", Duration::from_millis(500))?;
    function_time_holds(&report, "spin_gamma", Duration::from_millis(500))
}

#[test]
fn a_daemon_whose_parents_are_gone() -> Result<()> {
    // `cat` ends when the daemon does, which holds the other end of the pipe.
    let (report, _) = record(|run| run.shell("spin alpha 0.7 --daemon | cat"))?;
    function_time_holds(&report, "spin_alpha", Duration::from_millis(700))
}

#[test]
fn a_daemon_that_outlives_the_command_is_left_alone() -> Result<()> {
    let script = "spin alpha 20 --daemon --comm outliving >/dev/null 2>&1; spin beta 0.3";
    let recorded = record(|run| run.shell(script));
    let daemon = process_called("outliving")?;
    if let Some(daemon) = daemon {
        kill_process(daemon, Signal::KILL)?;
    }
    let (report, _) = recorded?;
    ensure!(daemon.is_some(), "the run ended after the daemon, or took it along");
    function_time_holds(&report, "spin_beta", Duration::from_millis(300))?;
    assert!(report.function("spin_alpha")?.total.weight > 0);
    Ok(())
}

#[test]
fn no_children_means_none() -> Result<()> {
    let script = "spin alpha 0.3; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let (_, folded) = record(|run| run.args(["--no-children"]).shell(script))?;
    assert_eq!(folded.weight_of("spin_alpha"), 0);
    assert_eq!(folded.weight_of_comm("sh"), folded.weight());
    Ok(())
}

#[test]
fn the_profile_begins_with_the_command() -> Result<()> {
    let run = Bpfprof::new(["-e", "page-faults", "-c", "1"]).workload("spin", &["alpha", "0.1"]).succeed()?;
    let folded = run.folded()?;
    assert!(folded.weight_of_comm("spin") > 0);
    // The process is a fork of bpfprof until it executes the command.
    let ours = folded.weight_where(|line| line.comm != "spin");
    assert_eq!(ours, 0, "{folded:?}");
    Ok(())
}

/// Samples CPU time at the default rate.
fn record(target: impl FnOnce(Bpfprof) -> Bpfprof) -> Result<(Report, Folded)> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::clock::<&str>([]).output(&json).output(&folded);
    target(run).succeed()?;
    Ok((Report::read(&json)?, Folded::read(&folded)?))
}

fn process_called(comm: &str) -> Result<Option<Pid>> {
    for process in fs::read_dir("/proc").context("reading /proc")?.flatten() {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if name.trim_end() == comm {
            return Ok(process.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw));
        }
    }
    Ok(None)
}
