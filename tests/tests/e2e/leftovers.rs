//! Nothing stays in the kernel, however bpfprof ends.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use bpfprof_tests::bpf_objects::{BpfObjects, Kind};
use bpfprof_tests::{Bpfprof, Running, Target};
use rustix::process::Signal;

#[test]
fn after_a_normal_end() -> Result<()> {
    nothing_stays_after(|run| {
        run.signal(Signal::INT)?;
        let ended = run.wait()?;
        ensure!(ended.code() == Some(0), "{}", ended.stderr);
        Ok(())
    })
}

#[test]
fn after_the_end_of_the_command() -> Result<()> {
    let before = BpfObjects::now()?;
    let mut run = Bpfprof::clock::<&str>([]).workload("spin", &["alpha", "1"]).start()?;
    run.wait_until_attached()?;
    let used = BpfObjects::now()?.since(&before);
    ensure!(used.count(Kind::Program) > 0, "no program was seen at work: {used:?}");
    ensure!(run.wait()?.code() == Some(0));
    assert_eq!(used.that_stay()?, BpfObjects::default());
    Ok(())
}

#[test]
fn after_a_kill_in_the_midst_of_sampling() -> Result<()> {
    nothing_stays_after(|run| {
        run.signal(Signal::KILL)?;
        let ended = run.wait()?;
        ensure!(ended.killed_by() == Some(9), "{}", ended.status);
        Ok(())
    })
}

#[test]
fn no_file_beside_the_output_after_a_kill() -> Result<()> {
    let target = Target::workload("spin", &["alpha", "60"])?;
    let folder = tempfile::tempdir()?;
    let mut run = Bpfprof::clock(["--pid", &target.pid()]).output(&folder.path().join("x.json")).start()?;
    run.sample_for(Duration::from_millis(300))?;
    run.signal(Signal::KILL)?;
    run.wait()?;
    let left: Vec<_> = fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

#[test]
fn the_command_inherits_no_descriptor() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = Bpfprof::clock::<&str>([]).output(&folder.path().join("x.folded"));
    // A descriptor of ours in a daemon would keep the sampling alive after our end.
    let list = "echo /proc/self/fd/*";
    let open = run.shell(&format!("{list}; spin alpha 0.2")).succeed()?.stdout;
    // What the test's own surroundings pass on is none of ours.
    let without = Command::new("sh").args(["-c", list]).stdin(Stdio::null()).output()?.stdout;
    assert_eq!(open, String::from_utf8(without)?);
    Ok(())
}

fn nothing_stays_after(end: impl FnOnce(Running) -> Result<()>) -> Result<()> {
    let target = Target::workload("spin", &["alpha", "60"])?;
    let before = BpfObjects::now()?;
    let mut run = Bpfprof::clock(["--pid", &target.pid()]).start()?;
    run.sample_for(Duration::from_millis(300))?;
    let used = BpfObjects::now()?.since(&before);
    for kind in [Kind::Program, Kind::Map, Kind::Link] {
        ensure!(used.count(kind) > 0, "no {kind:?} was seen at work: {used:?}");
    }
    end(run)?;
    assert_eq!(used.that_stay()?, BpfObjects::default());
    Ok(())
}
