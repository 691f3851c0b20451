//! The ways to tell bpfprof what to record, and a recording of the same work in each.

use std::{
    fmt, fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, ensure};

use super::{Bench, cgroup::Cgroup, cpu_time, recording::Recording, running::Running};

/// What names bpfprof's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// bpfprof starts the work.
    Launched,
    /// The whole machine.
    All,
    /// The cgroup that the work runs in.
    Cgroup,
    /// The shell that starts the work.
    Pid,
}

/// A recording, and what it took.
pub(super) struct Run {
    pub recording: Recording,
    /// The largest resident memory of bpfprof.
    pub peak_megabytes: f64,
    /// From the end of sampling to the end of bpfprof, with JSON and folded stacks written.
    pub to_outputs: Duration,
    /// Share of samples that are not of the work, of 100; `None` where none but the work is sampled.
    pub of_others: Option<f64>,
}

/// What a run beside the work took.
struct Attached {
    released: SystemTime,
    /// CPU time of the work, in seconds.
    work: f64,
    peak_megabytes: f64,
}

/// Longer than bpfprof waits for unwind tables before it samples.
const SETTLING: Duration = Duration::from_millis(2500);

impl Mode {
    pub(super) const EVERY: [Self; 4] = [Self::Launched, Self::All, Self::Cgroup, Self::Pid];

    /// Records work. `append` puts its program and arguments behind a command line, and its environment and directory into it.
    ///
    /// Unless bpfprof starts it, the work begins once bpfprof samples.
    pub(super) fn record(self, bench: &Bench<'_>, hertz: u32, append: impl Fn(&mut Command)) -> Result<Run> {
        let (mut bpfprof, json) = bench.bpfprof(hertz);
        bpfprof.arg("-o").arg(bench.folder.join("recording.folded"));
        // What an earlier run wrote must not pass for this one's.
        let _ = fs::remove_file(&json);
        if self == Self::Launched {
            append(bpfprof.arg("--"));
            let peak_megabytes = Running::start(&mut bpfprof)?.wait_for_peak()?;
            return Run::read(&json, peak_megabytes);
        }
        let Attached { released, work, peak_megabytes } = self.attach(&mut bpfprof, append)?;
        let mut run = Run::read(&json, peak_megabytes)?;
        let released = released.duration_since(UNIX_EPOCH).unwrap_or_default();
        ensure!(run.recording.began() <= released, "bpfprof began to sample after the work did");
        if self == Self::All {
            let samples = run.recording.header.samples.max(1) as f64;
            run.of_others = Some((100.0 * (1.0 - work * f64::from(hertz) / samples)).max(0.0));
        }
        Ok(run)
    }

    /// Runs the work below a shell that waits until bpfprof samples.
    fn attach(self, bpfprof: &mut Command, append: impl Fn(&mut Command)) -> Result<Attached> {
        let cgroup = if self == Self::Cgroup { Some(Cgroup::make()?) } else { None };
        let mut shell = Command::new("sh");
        // The status keeps the shell from becoming the work.
        let work = r#"read -r go && "$@"; exit $?"#;
        match &cgroup {
            Some(cgroup) => {
                let script = format!(r#"echo $$ > "$0/cgroup.procs" && {work}"#);
                shell.args(["-c", &script]).arg(cgroup.directory());
            }
            None => {
                shell.args(["-c", work, "sh"]);
            }
        }
        append(&mut shell);
        let mut shell = Running::start_waiting(&mut shell)?;
        match &cgroup {
            Some(cgroup) => bpfprof.arg("--cgroup").arg(cgroup.directory()),
            None if self == Self::Pid => bpfprof.args(["--pid", &shell.id().to_string()]),
            None => bpfprof.arg("--all"),
        };
        let mut bpfprof = Running::start(bpfprof)?;
        bpfprof.wait_until_attached()?;
        thread::sleep(SETTLING);
        let released = SystemTime::now();
        let before = cpu_time::of_ended_children()?;
        shell.release()?;
        shell.wait()?;
        let work = cpu_time::of_ended_children()? - before;
        // With `--pid` bpfprof ends with the shell.
        if self != Self::Pid {
            bpfprof.interrupt()?;
        }
        Ok(Attached { released, work, peak_megabytes: bpfprof.wait_for_peak()? })
    }
}

impl Run {
    /// What bpfprof, which has just ended, wrote to this file.
    fn read(json: &Path, peak_megabytes: f64) -> Result<Self> {
        let ended = SystemTime::now();
        let recording = Recording::read(json)?;
        Ok(Self { to_outputs: recording.since_end(ended), recording, peak_megabytes, of_others: None })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launched => "launched",
            Self::All => "--all",
            Self::Cgroup => "--cgroup",
            Self::Pid => "--pid of its shell",
        })
    }
}
