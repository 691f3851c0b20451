//! What bpfprof wrote, as far as the measurements read it.

use std::{
    fs,
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
    pub undelivered: f64,
}

#[derive(Deserialize)]
pub(super) struct Stacks {
    pub user: u64,
    pub whole: u64,
}

impl Recording {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("{} is not bpfprof's JSON", file.display()))
    }

    /// Whole stacks of 100 user stacks.
    pub(super) fn whole_percent(&self) -> f64 {
        let Stacks { user, whole } = self.header.stacks;
        100.0 * whole as f64 / user.max(1) as f64
    }

    /// From the end of sampling to this moment.
    pub(super) fn since_end(&self, now: SystemTime) -> Duration {
        let end = Duration::from_nanos(self.header.began) + Duration::from_secs_f64(self.header.seconds);
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
        let source = self.workspace.root().join(format!("tests/workloads/{name}.c"));
        let program = self.folder.join(name);
        run(Command::new("cc").args(["-O2", "-pthread"]).args(flags).arg("-o").arg(&program).arg(source))?;
        Ok(program)
    }
}
