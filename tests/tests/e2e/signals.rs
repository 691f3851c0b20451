//! Ctrl-C and SIGTERM: once writes everything, twice aborts and leaves no half file.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Finished, Folded, Report, Running, Target};
use rustix::process::Signal;

#[test]
fn once_ends_the_run_with_every_output_complete() -> Result<()> {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let target = Target::workload("spin", &["alpha", "60"])?;
        let outputs = Outputs::new()?;
        let mut run = outputs.all_of(Bpfprof::clock(["--pid", &target.pid()])).start()?;
        run.sample_for(Duration::from_millis(700))?;
        run.signal(signal)?;
        let ended = run.wait()?;
        assert_eq!(ended.code(), Some(0), "{signal:?}: {} {}", ended.status, ended.stderr);
        outputs.are_complete(&ended)?;
    }
    Ok(())
}

#[test]
fn once_before_anything_is_armed_says_so() -> Result<()> {
    // On a loaded machine the signal may come too late.
    for _ in 0..8 {
        let outputs = Outputs::new()?;
        let run = outputs.all_of(Bpfprof::clock(["--all"])).start()?;
        while !catches(&run, Signal::INT)? {
            thread::sleep(Duration::from_millis(1));
        }
        run.signal(Signal::INT)?;
        let ended = run.wait()?;
        if ended.code() == Some(1) && ended.stderr.contains("stopped by SIGINT before sampling began") {
            assert!(!ended.stderr.contains("did not run"), "{}", ended.stderr);
            return outputs.are_alone();
        }
    }
    anyhow::bail!("no run was stopped before it sampled")
}

/// Whether the process has a handler for this signal.
fn catches(run: &Running, signal: Signal) -> Result<bool> {
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid().as_raw_nonzero()))?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).context("no SigCgt")?;
    Ok(u64::from_str_radix(caught.trim(), 16)? >> (signal.as_raw() - 1) & 1 == 1)
}

#[test]
fn once_flushes_stdout_too() -> Result<()> {
    let _target = Target::workload("spin", &["alpha", "60"])?;
    let mut run = Bpfprof::clock(["--all"]).start()?;
    run.sample_for(Duration::from_millis(700))?;
    run.signal(Signal::INT)?;
    let ended = run.wait()?;
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.folded()?.weight_of("spin_alpha") > 0);
    Ok(())
}

#[test]
fn a_command_that_the_terminal_interrupts_gives_its_status_and_its_profile() -> Result<()> {
    // The end of the command and the signal reach bpfprof at the same moment, in either order: several tries meet both.
    for _ in 0..8 {
        interrupt_command_and_bpfprof(Signal::INT, 130)?;
    }
    interrupt_command_and_bpfprof(Signal::TERM, 143)
}

#[test]
fn bpfprof_alone_interrupted_ends_its_command_and_writes_what_it_has() -> Result<()> {
    let outputs = Outputs::new()?;
    let mut run = outputs.all_of(Bpfprof::clock::<&str>([])).workload("spin", &["alpha", "60"]).start()?;
    run.sample_for(Duration::from_millis(700))?;
    run.signal(Signal::TERM)?;
    let ended = run.wait()?;
    assert_eq!(ended.code(), Some(143), "{} {}", ended.status, ended.stderr);
    outputs.are_complete(&ended)
}

#[test]
fn twice_leaves_whole_files_or_none() -> Result<()> {
    let target = Target::workload("spin", &["alpha", "60"])?;
    // The second one meets bpfprof anywhere between stopping and having ended.
    for pause in [0, 2, 10, 40] {
        let outputs = Outputs::new()?;
        let mut run = outputs.all_of(Bpfprof::clock(["--pid", &target.pid()])).start()?;
        run.sample_for(Duration::from_millis(300))?;
        interrupt_twice(&run, Duration::from_millis(pause))?;
        let ended = run.wait()?;
        if ended.code() == Some(0) {
            outputs.are_complete(&ended)?;
        }
        outputs.are_whole_or_absent()?;
    }
    Ok(())
}

fn interrupt_command_and_bpfprof(signal: Signal, status: i32) -> Result<()> {
    let outputs = Outputs::new()?;
    let mut run = outputs.all_of(Bpfprof::clock::<&str>([])).workload("spin", &["alpha", "60"]).start()?;
    run.sample_for(Duration::from_millis(200))?;
    run.signal_group(signal)?;
    let ended = run.wait()?;
    assert_eq!(ended.code(), Some(status), "{signal:?}: {} {}", ended.status, ended.stderr);
    outputs.are_complete(&ended)
}

fn interrupt_twice(run: &Running, pause: Duration) -> Result<()> {
    run.signal(Signal::INT)?;
    thread::sleep(pause);
    // A process that has not been waited for takes a signal also after its end.
    run.signal(Signal::INT)
}

/// One file of each format, alone in a folder.
struct Outputs {
    folder: tempfile::TempDir,
}

impl Outputs {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    fn files(&self) -> [PathBuf; 3] {
        ["x.folded", "x.svg", "x.json"].map(|name| self.folder.path().join(name))
    }

    fn all_of(&self, run: Bpfprof) -> Bpfprof {
        self.files().iter().fold(run, |run, file| run.output(file))
    }

    fn are_complete(&self, run: &Finished) -> Result<()> {
        for file in self.files() {
            is_whole(&file).with_context(|| format!("{}, after: {}", run.status, run.stderr))?;
        }
        self.are_alone()
    }

    fn are_whole_or_absent(&self) -> Result<()> {
        for file in self.files().iter().filter(|file| file.exists()) {
            is_whole(file)?;
        }
        self.are_alone()
    }

    fn are_alone(&self) -> Result<()> {
        let entries = fs::read_dir(self.folder.path())?.flatten().map(|entry| entry.path());
        let strange: Vec<_> = entries.filter(|entry| !self.files().contains(entry)).collect();
        ensure!(strange.is_empty(), "left beside the outputs: {strange:?}");
        Ok(())
    }
}

fn is_whole(file: &Path) -> Result<()> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => ensure!(Report::read(file)?.function("spin_alpha")?.total.weight > 0),
        Some("folded") => ensure!(Folded::read(file)?.weight_of("spin_alpha") > 0),
        _ => ensure!(fs::read_to_string(file)?.trim_end().ends_with("</svg>"), "{} is cut", file.display()),
    }
    Ok(())
}
