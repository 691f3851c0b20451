//! What a running bpfprof holds.

use std::fs;

use anyhow::{Context, Result};

use crate::proc_fields;

/// Its largest resident memory so far.
pub(super) fn peak_megabytes(process: u32) -> Result<f64> {
    status_megabytes(process, "VmHWM")
}

/// Its resident memory.
pub(super) fn resident_megabytes(process: u32) -> Result<f64> {
    status_megabytes(process, "VmRSS")
}

/// Its open descriptors.
pub(super) fn descriptors(process: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd")).context("bpfprof has ended")?.count())
}

fn status_megabytes(process: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("bpfprof has ended")?;
    let bytes = proc_fields::bytes(&status, field).context("bpfprof has ended")?;
    Ok(bytes as f64 / 1e6)
}
