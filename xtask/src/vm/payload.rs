//! What is put into the guest: bpfprof, and the programs that it samples there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{aarch64_sysroot::Sysroot, lane::Machine};
use crate::{
    cargo::cargo,
    process::{run as run_command, stdout_of},
    workspace::Workspace,
};

/// Programs for one machine.
pub(super) struct Payload {
    pub(super) bpfprof: PathBuf,
    /// The shared objects that bpfprof loads, at the paths where it looks for them.
    pub(super) libraries: Vec<PathBuf>,
    /// The workload built without frame pointers.
    pub(super) chain: PathBuf,
    /// The workload built with them.
    pub(super) chain_fp: PathBuf,
    /// The workload that knows how long its functions took.
    pub(super) turns: PathBuf,
}

/// Builds the programs; those that are up to date stay. A sysroot means that bpfprof is built by its compiler, static.
pub(super) fn build(
    workspace: &Workspace,
    machine: Machine,
    sysroot: Option<&Sysroot>,
    folder: &Path,
) -> Result<Payload> {
    let programs = folder.join(machine.debian_architecture());
    fs::create_dir_all(&programs).with_context(|| format!("{} cannot be created", programs.display()))?;
    let chain = programs.join("chain");
    compile(workspace, machine, "chain.c", &["-fomit-frame-pointer"], &chain)?;
    let chain_fp = programs.join("chain-fp");
    // A leaf without a frame would hide its caller from the walk.
    let with_frames = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    compile(workspace, machine, "chain.c", &with_frames, &chain_fp)?;
    let turns = programs.join("turns");
    compile(workspace, machine, "turns.c", &[], &turns)?;
    let (bpfprof, libraries) = match sysroot {
        None => host_bpfprof(workspace, &programs)?,
        Some(sysroot) => (cross_bpfprof(workspace, machine, sysroot, &folder.join("build"))?, Vec::new()),
    };
    Ok(Payload { bpfprof, libraries, chain, chain_fp, turns })
}

/// The very program that all other tests run, without the debug information, which would fill the guest's memory.
fn host_bpfprof(workspace: &Workspace, programs: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    run_command(cargo(workspace).args(["build", "--release", "--package", "bpfprof"]))?;
    let stripped = programs.join("bpfprof");
    run_command(
        Command::new("strip").arg("--strip-debug").arg("-o").arg(&stripped).arg(workspace.bpfprof()),
    )?;
    let libraries = libraries(&stdout_of(Command::new("ldd").arg(&stripped))?);
    ensure!(!libraries.is_empty(), "`ldd` names no shared object that bpfprof needs");
    Ok((stripped, libraries))
}

/// The files in what ldd prints: `NAME => FILE (ADDRESS)`, or the file alone for the loader.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    ldd.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

/// Static, small and quick to build: what differs on the other machine lies in the kernel and in the registers, not in how well the
/// compiler optimised.
fn cross_bpfprof(
    workspace: &Workspace,
    machine: Machine,
    sysroot: &Sysroot,
    target: &Path,
) -> Result<PathBuf> {
    let mut build = cargo(workspace);
    build.args(["build", "--release", "--package", "bpfprof", "--target", machine.triple()]);
    // Other flags than the rest of the workspace mean another target folder, or each build would undo the other.
    build.arg("--target-dir").arg(target);
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "none").env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    build.env("RUSTC", sysroot.rustc());
    build.env(format!("CC_{}", machine.triple().replace('-', "_")), machine.c_compiler());
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("-Clinker={}", machine.c_compiler()),
        format!("--sysroot={}", sysroot.folder().display()),
    ];
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")))?;
    Ok(target.join(machine.triple()).join("release/bpfprof"))
}

fn compile(workspace: &Workspace, machine: Machine, source: &str, flags: &[&str], to: &Path) -> Result<()> {
    let mut compile = Command::new(machine.c_compiler());
    compile.args(["-O2", "-static", "-Wall", "-Werror"]).args(flags).arg("-o").arg(to);
    run_command(compile.arg(workspace.root().join("xtask/src/vm").join(source)))
}

#[cfg(test)]
mod tests {
    use super::libraries;
    use std::path::Path;

    #[test]
    fn libraries_and_the_loader() {
        let ldd = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f02)\n\t/lib64/ld.so (0x00007f03)\n";
        assert_eq!(libraries(ldd), [Path::new("/lib/libc.so.6"), Path::new("/lib64/ld.so")]);
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
