//! What bpfprof wrote, as far as the measurements read it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Bench;
use crate::process::run;

/// The JSON of a run.
#[derive(Deserialize)]
pub(super) struct Recording {
    pub header: Header,
}

#[derive(Deserialize)]
pub(super) struct Header {
    pub samples: u64,
    /// Beginning, in nanoseconds since 1970.
    began: u64,
    /// How long was sampled.
    pub seconds: f64,
    pub lost: Lost,
    pub stacks: Stacks,
}

#[derive(Deserialize)]
pub(super) struct Lost {
    pub samples: u64,
    /// Share of the event that was counted and never delivered.
    pub undelivered: Option<f64>,
}

/// States of user stacks, in samples.
#[derive(Deserialize)]
pub(super) struct Stacks {
    /// Samples with a user stack.
    user: u64,
    /// Of these, with one that reaches the root.
    #[serde(rename = "whole")]
    complete: u64,
    /// With one on whose way frame pointers stood in for missing call-frame information.
    guessed: u64,
    /// The others by reason, most frequent first.
    #[serde(rename = "cut")]
    truncated: Vec<(String, u64)>,
}

/// Shares of user stacks, of 100.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    pub complete: f64,
    pub guessed: f64,
    pub truncated: f64,
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { complete, guessed, truncated } = self;
        write!(f, "{complete:.1} % complete, {guessed:.2} % guessed, {truncated:.2} % truncated")
    }
}

impl Recording {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("{} is not bpfprof's JSON", file.display()))
    }

    /// States of the user stacks. A recording without any has no share of them complete.
    pub(super) fn shares(&self) -> Shares {
        let Stacks { user, complete, guessed, .. } = self.header.stacks;
        let percent = |samples: u64| 100.0 * samples as f64 / user.max(1) as f64;
        Shares {
            complete: percent(complete),
            guessed: percent(guessed),
            truncated: percent(user.saturating_sub(complete).saturating_sub(guessed)),
        }
    }

    /// Samples with a user stack.
    pub(super) fn user_stacks(&self) -> u64 {
        self.header.stacks.user
    }

    /// Why stacks are truncated, with samples, most frequent first.
    pub(super) fn truncated(&self) -> &[(String, u64)] {
        &self.header.stacks.truncated
    }

    /// Samples that are known to be lost, of 100 that were due.
    pub(super) fn lost_percent(&self) -> f64 {
        let Header { samples, lost, .. } = &self.header;
        100.0 * lost.samples as f64 / (samples + lost.samples).max(1) as f64
    }

    /// When sampling began, since 1970.
    pub(super) fn began(&self) -> Duration {
        Duration::from_nanos(self.header.began)
    }

    /// From the end of sampling to this moment.
    pub(super) fn since_end(&self, now: SystemTime) -> Duration {
        let end = self.began() + Duration::from_secs_f64(self.header.seconds);
        now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(end)
    }
}

impl Bench<'_> {
    /// A run of bpfprof that says nothing and writes JSON to the second file, at so many samples a second.
    pub(super) fn bpfprof(&self, hertz: u32) -> (Command, PathBuf) {
        let json = self.folder.join("recording.json");
        let mut command = Command::new(self.workspace.bpfprof());
        command.args(["--quiet", "-e", "cpu-clock", "-F", &hertz.to_string(), "-o"]).arg(&json);
        command.stdout(Stdio::null());
        (command, json)
    }

    /// A run of `perf record` at so many samples a second, with stacks of this kind, up to the command.
    pub(super) fn perf_record(&self, hertz: u32, graph: &str) -> Command {
        let mut command = Command::new("perf");
        command.args(["record", "--quiet", "-e", "cpu-clock", "-F", &hertz.to_string()]);
        command.args(["--call-graph", graph, "-o"]).arg(self.perf_data()).arg("--");
        command
    }

    /// What it writes.
    pub(super) fn perf_data(&self) -> PathBuf {
        self.folder.join("perf.data")
    }

    /// Compiles a C workload of the tests.
    pub(super) fn c_workload(&self, name: &str, flags: &[&str]) -> Result<PathBuf> {
        self.compile(&self.c_source(name), name, flags)
    }

    /// The source of a C workload of the tests.
    pub(super) fn c_source(&self, name: &str) -> PathBuf {
        self.workspace.root().join(format!("tests/workloads/{name}.c"))
    }

    /// Compiles a C program or library under this name. It may include what workloads of the tests share.
    pub(super) fn compile(&self, source: &Path, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let program = self.folder.join(name);
        let shared = self.workspace.root().join("tests/workloads");
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-pthread", "-I"]).arg(shared).args(flags).arg("-o").arg(&program).arg(source);
        run(&mut compile)?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_STACKS: &str = r#"{"user":0,"whole":0,"guessed":0,"cut":[]}"#;

    fn recording(stacks: &str) -> Recording {
        let json = format!(
            r#"{{"header":{{"samples":990,"began":1000000000,"seconds":2.5,"lost":{{"samples":10,"undelivered":null}},"stacks":{stacks}}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn the_states_of_stacks_add_up() {
        let recorded = recording(r#"{"user":200,"whole":180,"guessed":15,"cut":[["no table",5]]}"#);
        let Shares { complete, guessed, truncated } = recorded.shares();
        assert!((complete, guessed, truncated) == (90.0, 7.5, 2.5));
        assert_eq!(recorded.truncated(), [("no table".to_owned(), 5)]);
    }

    #[test]
    fn a_recording_without_user_stacks_has_no_complete_ones() {
        let shares = recording(NO_STACKS).shares();
        assert!((shares.complete, shares.truncated) == (0.0, 0.0));
    }

    #[test]
    fn losses_and_times() {
        let recorded = recording(NO_STACKS);
        assert!((recorded.lost_percent() - 1.0).abs() < 1e-9);
        let now = UNIX_EPOCH + Duration::from_millis(3750);
        assert_eq!(recorded.since_end(now), Duration::from_millis(250));
    }
}
