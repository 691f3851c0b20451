//! A run of bpfprof, and what must hold for the names in it.

use std::ffi::OsStr;

use anyhow::{Result, ensure};
use bpfprof_tests::folded::{Line, is_kernel, is_named};
use bpfprof_tests::{Bpfprof, Folded, Report};

/// Outputs of a run.
pub(crate) struct Recorded {
    pub(crate) folded: Folded,
    pub(crate) report: Report,
    pub(crate) stderr: String,
}

impl Recorded {
    /// Samples CPU time of a target at the default rate.
    pub(crate) fn of(target: impl FnOnce(Bpfprof) -> Bpfprof) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
        let run = Bpfprof::clock::<&str>([]).output(&json).output(&folded);
        let finished = target(run).succeed()?;
        Ok(Self { folded: Folded::read(&folded)?, report: Report::read(&json)?, stderr: finished.stderr })
    }

    /// Samples a command.
    pub(crate) fn command<A: AsRef<OsStr>>(words: impl IntoIterator<Item = A>) -> Result<Self> {
        Self::of(|run| run.args(["--"]).args(words))
    }

    /// Samples a script.
    pub(crate) fn script(script: &str) -> Result<Self> {
        Self::command(["sh", "-c", script])
    }

    /// Fails unless this function has at least this much of the time in which its threads were in user mode, or burned.
    pub(crate) fn spent_in(&self, function: &str, share: f64) -> Result<()> {
        let (inside, all) = (self.folded.weight_of(function), self.folded.weight());
        ensure!(
            inside as f64 >= share * all as f64,
            "{function} has {inside} of {all}:\n{}\n{}",
            self.stacks(),
            self.stderr
        );
        Ok(())
    }

    /// Fails if a stack has this function.
    pub(crate) fn never_in(&self, function: &str) -> Result<()> {
        let inside = self.folded.weight_of(function);
        ensure!(inside == 0, "{function} did not run, but has {inside}:\n{}\n{}", self.stacks(), self.stderr);
        Ok(())
    }

    /// Share of the innermost user frames of these stacks that have a name.
    pub(crate) fn named_share(&self, wanted: impl Fn(&Line) -> bool) -> f64 {
        let (mut all, mut named) = (0, 0);
        for line in self.folded.lines.iter().filter(|line| wanted(line)) {
            if let Some(innermost) = line.frames.iter().rfind(|frame| !is_kernel(frame)) {
                all += line.weight;
                named += if is_named(innermost) { line.weight } else { 0 };
            }
        }
        named as f64 / all as f64
    }

    fn stacks(&self) -> String {
        let lines = self.folded.lines.iter().take(20);
        let lines = lines.map(|line| format!("{};{} {}\n", line.comm, line.frames.join(";"), line.weight));
        lines.collect()
    }
}
