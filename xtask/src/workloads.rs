//! Builds the programs that the tests and the demo profile.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{cargo::cargo, process::run, workspace::Workspace};

/// The package whose binaries are the workloads.
pub(crate) const PACKAGE: &str = "bpfprof-tests";

/// Builds every workload, with and without frame pointers. C programs are compiled by the tests that use them.
pub(crate) fn build_all(workspace: &Workspace) -> Result<()> {
    run(build(workspace, FramePointers::Kept).arg("--bins"))?;
    run(build(workspace, FramePointers::Omitted).arg("--bins"))
}

/// Builds one workload and returns its path.
pub(crate) fn build_one(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    run(build(workspace, FramePointers::Kept).args(["--bin", name]))?;
    Ok(workspace.workloads().join(name))
}

#[derive(Clone, Copy)]
enum FramePointers {
    /// For the frame-pointer walk.
    Kept,
    /// As Rust builds by default, and for unwinding by tables.
    Omitted,
}

/// Optimised, with debug information for names of inlined functions.
/// Other flags than the rest of the workspace mean another target folder, or each build would undo the other.
fn build(workspace: &Workspace, frame_pointers: FramePointers) -> Command {
    let (target, flag) = match frame_pointers {
        FramePointers::Kept => (workspace.workloads_target(), "-Cforce-frame-pointers=yes"),
        FramePointers::Omitted => {
            (workspace.workloads_without_frame_pointers_target(), "-Cforce-frame-pointers=no")
        }
    };
    let mut command = cargo(workspace);
    command.args(["build", "--release", "--package", PACKAGE]);
    command.arg("--target-dir").arg(target);
    command.env("CARGO_ENCODED_RUSTFLAGS", flag);
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "1");
    command
}
