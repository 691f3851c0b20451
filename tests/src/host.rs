//! Where the programs under test lie, what this host can do, and the list of tests that it cannot run.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The built bpfprof.
///
/// # Panics
/// When the tests were not started by `cargo xtask test`, which builds it.
#[must_use]
pub fn bpfprof() -> PathBuf {
    PathBuf::from(from_xtask("BPFPROF_BIN"))
}

/// A workload, by the name of its file in `src/bin`.
///
/// # Panics
/// When the tests were not started by `cargo xtask test`, which builds it.
#[must_use]
pub fn workload(name: &str) -> PathBuf {
    Path::new(&from_xtask("BPFPROF_WORKLOADS")).join(name)
}

/// The same workload without frame pointers, as Rust builds by default.
///
/// # Panics
/// When the tests were not started by `cargo xtask test`, which builds it.
#[must_use]
pub fn workload_without_frame_pointers(name: &str) -> PathBuf {
    Path::new(&from_xtask("BPFPROF_WORKLOADS_NOFP")).join(name)
}

/// Books that `test` cannot run here, in the list that `cargo xtask test` shows at its end.
pub fn skip(test: &str, reason: &str) -> Result<()> {
    eprintln!("skipped {test}: {reason}");
    let Some(list) = env::var_os("BPFPROF_SKIPS") else { return Ok(()) };
    let line = format!("{test}\t{}\n", reason.replace(['\n', '\t'], " "));
    let mut list =
        OpenOptions::new().append(true).create(true).open(&list).context("opening the list of skips")?;
    // One write, so that lines of several test programs do not mix.
    list.write_all(line.as_bytes()).context("writing the list of skips")
}

/// Whether the CPU's own performance counters show: `cpu` on most machines, `cpu_core` and `cpu_atom` on hybrid ones,
/// `armv8_pmuv3_0` and its like on Arm (`/sys/bus/event_source/devices`).
#[must_use]
pub fn has_pmu() -> bool {
    let devices = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    let mut names = devices.map(|device| device.file_name().to_string_lossy().into_owned());
    names.any(|name| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv"))
}

/// Number of CPUs that are online.
#[must_use]
pub fn online_cpus() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpus = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    cpus.max(1)
}

fn from_xtask(variable: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test`"))
}
