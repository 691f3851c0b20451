//! Builds the programs that the tests and the demo profile.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{cargo::cargo, process::run, workspace::Workspace};

/// The package whose binaries are the workloads.
pub(crate) const PACKAGE: &str = "bpfprof-tests";

/// Builds every workload. C programs are compiled by the tests that use them.
pub(crate) fn build_all(workspace: &Workspace) -> Result<()> {
    run(build(workspace).arg("--bins"))
}

/// Builds one workload and returns its path.
pub(crate) fn build_one(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    run(build(workspace).args(["--bin", name]))?;
    Ok(workspace.workloads().join(name))
}

/// Optimised, with frame pointers for the frame-pointer walk and debug information for names of inlined functions.
/// Other flags than the rest of the workspace mean another target folder, or each build would undo the other.
fn build(workspace: &Workspace) -> Command {
    let mut command = cargo(workspace);
    command.args(["build", "--release", "--package", PACKAGE]);
    command.arg("--target-dir").arg(workspace.workloads_target());
    command.env("CARGO_ENCODED_RUSTFLAGS", "-Cforce-frame-pointers=yes");
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "1");
    command
}
