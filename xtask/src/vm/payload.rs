//! What is put into the guest: a static bpfprof and the programs that it samples there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{aarch64_sysroot::Sysroot, lane::Machine};
use crate::{cargo::cargo, process::run as run_command, workspace::Workspace};

/// Static programs for one machine.
pub(super) struct Payload {
    pub(super) bpfprof: PathBuf,
    /// The workload built without frame pointers.
    pub(super) chain: PathBuf,
    /// The workload built with them.
    pub(super) chain_fp: PathBuf,
}

/// Builds the programs below `folder`; those that are up to date stay.
pub(super) fn build(
    workspace: &Workspace,
    machine: Machine,
    sysroot: Option<&Sysroot>,
    folder: &Path,
) -> Result<Payload> {
    let programs = folder.join(machine.debian_architecture());
    fs::create_dir_all(&programs).with_context(|| format!("{} cannot be created", programs.display()))?;
    let payload = Payload {
        bpfprof: build_bpfprof(workspace, machine, sysroot, &folder.join("build"))?,
        chain: programs.join("chain"),
        chain_fp: programs.join("chain-fp"),
    };
    compile_chain(workspace, machine, &["-fomit-frame-pointer"], &payload.chain)?;
    // A leaf without a frame would hide its caller from the walk.
    let with_frames = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    compile_chain(workspace, machine, &with_frames, &payload.chain_fp)?;
    Ok(payload)
}

/// A folder of its own for the results: other flags than the rest of the workspace.
fn build_bpfprof(
    workspace: &Workspace,
    machine: Machine,
    sysroot: Option<&Sysroot>,
    target: &Path,
) -> Result<PathBuf> {
    let mut build = cargo(workspace);
    build.args(["build", "--release", "--locked", "--package", "bpfprof", "--target", machine.triple()]);
    build.arg("--target-dir").arg(target);
    // Small, for the guest has it in memory, and quick to build: the work under test is the kernel's.
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "none").env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    if let Some(sysroot) = sysroot {
        build.env("RUSTC", sysroot.rustc());
        build.env(format!("CC_{}", machine.triple().replace('-', "_")), machine.c_compiler());
        flags.push(format!("-Clinker={}", machine.c_compiler()));
        flags.push(format!("--sysroot={}", sysroot.folder().display()));
    }
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")))?;
    Ok(target.join(machine.triple()).join("release/bpfprof"))
}

fn compile_chain(workspace: &Workspace, machine: Machine, flags: &[&str], to: &Path) -> Result<()> {
    let mut compile = Command::new(machine.c_compiler());
    compile.args(["-O2", "-static", "-Wall", "-Werror"]).args(flags).arg("-o").arg(to);
    run_command(compile.arg(workspace.root().join("xtask/src/vm/chain.c")))
}
