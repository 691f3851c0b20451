//! `setup-ebpf`: installs on Debian what `build-ebpf` needs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    bpf_toolchain::{BPF_LINKER_VERSION, pinned_linker},
    cargo::cargo,
    debian,
    privilege::Privilege,
    process::{answer_of, find_on_path, run as run_command},
    workspace::Workspace,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only say what is missing
    #[arg(long)]
    no_install: bool,
}

/// Installs the Debian packages and bpf-linker, each only where it is missing.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let missing = debian::missing(debian::FOR_EBPF);
    let linker = pinned_linker(workspace);
    if options.no_install {
        let mut wanted: Vec<String> =
            missing.iter().map(|name| format!("the Debian package {name}")).collect();
        if linker.is_none() {
            wanted.push(format!("bpf-linker {BPF_LINKER_VERSION}"));
        }
        if wanted.is_empty() {
            eprintln!("xtask: nothing is missing");
            return Ok(());
        }
        bail!("missing: {}", wanted.join(", "));
    }
    if !missing.is_empty() {
        debian::install(&missing, Privilege::acquire())?;
    }
    match linker.or_else(|| pinned_linker(workspace)) {
        Some(linker) => eprintln!("xtask: bpf-linker {BPF_LINKER_VERSION} is {}", linker.display()),
        None => install_linker(workspace)?,
    }
    Ok(())
}

fn install_linker(workspace: &Workspace) -> Result<()> {
    let root = workspace.tools();
    let Some(llvm) = llvm_prefix() else {
        bail!("LLVM 22 is missing: neither llvm-config-22 nor /usr/lib/llvm-22 is there");
    };
    eprintln!(
        "xtask: installing bpf-linker {BPF_LINKER_VERSION} to {} with LLVM from {}",
        root.display(),
        llvm.display()
    );
    let mut install = cargo(workspace);
    install.args(["install", "bpf-linker", "--version", BPF_LINKER_VERSION, "--locked", "--force"]);
    install.args(["--no-default-features", "--features", "llvm-22", "--root"]).arg(&root);
    install.env("LLVM_PREFIX", llvm);
    let scratch = workspace.target().join("bpf-linker");
    run_command(install.env("CARGO_TARGET_DIR", &scratch))?;
    fs::remove_dir_all(&scratch).with_context(|| format!("{} cannot be removed", scratch.display()))
}

fn llvm_prefix() -> Option<PathBuf> {
    let from_config = find_on_path("llvm-config-22")
        .and_then(|config| answer_of(Command::new(config).arg("--prefix")))
        .map(PathBuf::from);
    from_config
        .or_else(|| Some(Path::new("/usr/lib/llvm-22").to_owned()))
        .filter(|prefix| prefix.join("lib").is_dir())
}
