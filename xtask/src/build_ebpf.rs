//! `build-ebpf`: compiles the BPF programs and keeps, or checks, the object that bpfprof embeds.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    bpf_toolchain::{BpfToolchain, Identity},
    cargo::cargo,
    process::run as run_command,
    strip_debug::strip_debug,
    workspace::Workspace,
};

const TARGET: &str = "bpfel-unknown-none";
const PACKAGE: &str = "profiler-ebpf";
const BINARY: &str = "bpfprof-ebpf";

/// The object serves every machine, so the one whose bindings aya-ebpf compiles in is fixed, not taken from the host.
const BINDINGS: (&str, &str) = ("AYA_BPF_TARGET_ARCH", "x86_64");

#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Rebuild, change nothing, and fail if the kept object is not what the source gives
    #[arg(long)]
    check: bool,
    /// Lint the BPF programs with clippy, and build nothing
    #[arg(long, conflicts_with = "check")]
    clippy: bool,
}

impl Options {
    /// Compare with the kept object.
    pub(crate) fn check() -> Self {
        Self { check: true, clippy: false }
    }
}

/// Builds the object and writes it, or with `--check` compares it with the kept one.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if options.clippy {
        return clippy(workspace);
    }
    let kept_by = kept_identity(workspace);
    let toolchain = BpfToolchain::find(workspace, kept_by.as_ref())?;
    eprintln!("xtask: building the BPF programs with {}", toolchain.identity().line());
    let object = build(workspace, &toolchain, options.check)?;
    if options.check {
        check(workspace, &object, toolchain.identity(), kept_by.as_ref())
    } else {
        keep(workspace, &object, toolchain.identity(), kept_by.as_ref())
    }
}

/// Lints the BPF programs, or says on stderr that the tool chain has no clippy.
pub(crate) fn clippy(workspace: &Workspace) -> Result<()> {
    let toolchain = BpfToolchain::find(workspace, kept_identity(workspace).as_ref())?;
    let driver = match toolchain.clippy_driver() {
        Ok(driver) => driver,
        Err(source) => {
            eprintln!("xtask: the BPF programs are NOT linted: their tool chain has no clippy (`{source}`)");
            return Ok(());
        }
    };
    let mut command = compile(workspace, &toolchain, "check", "bpf-clippy", &["-Dwarnings"])?;
    // What `cargo clippy` does, by hand: Debian's clippy comes without a cargo.
    run_command(command.env("RUSTC_WORKSPACE_WRAPPER", driver))
}

/// The tool chain of the kept object.
fn kept_identity(workspace: &Workspace) -> Option<Identity> {
    fs::read_to_string(workspace.kept_toolchain()).ok().map(|text| Identity::from_text(&text))
}

fn build(workspace: &Workspace, toolchain: &BpfToolchain, locked: bool) -> Result<Vec<u8>> {
    let mut command = compile(workspace, toolchain, "build", "bpf", &[])?;
    if locked {
        command.arg("--locked");
    }
    run_command(&mut command)?;
    let built = workspace.target().join("bpf").join(TARGET).join("release").join(BINARY);
    let linked = fs::read(&built).with_context(|| format!("{} cannot be read", built.display()))?;
    let object = strip_debug(&linked).context("the built BPF object cannot be stripped of its DWARF")?;
    refuse_local_paths(workspace, toolchain, &object)?;
    Ok(object)
}

/// The cargo command for the BPF crate, with results in the subfolder `folder` of the target folder.
fn compile(
    workspace: &Workspace,
    toolchain: &BpfToolchain,
    subcommand: &str,
    folder: &str,
    more_flags: &[&str],
) -> Result<Command> {
    let mut flags = vec!["-Cdebuginfo=2".to_owned(), "-Clink-arg=--btf".to_owned()];
    flags.extend(more_flags.iter().map(|flag| (*flag).to_owned()));
    for (from, to) in path_prefixes(workspace, toolchain)? {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    }
    let mut command = toolchain.cargo(workspace);
    command.args([subcommand, "--release", "--package", PACKAGE, "--target", TARGET, "-Zbuild-std=core"]);
    command.arg("--target-dir").arg(workspace.target().join(folder));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command.env(BINDINGS.0, BINDINGS.1);
    Ok(command)
}

/// Local folders that the compiler writes into the object, and what it is to write instead, so that the bytes do not depend on them.
fn path_prefixes(workspace: &Workspace, toolchain: &BpfToolchain) -> Result<Vec<(PathBuf, &'static str)>> {
    // Unpacks the packages, so that their folders are there to be listed.
    run_command(cargo(workspace).args(["fetch", "--quiet"]))?;
    let mut prefixes = vec![(workspace.root().to_owned(), "/bpfprof")];
    let sources = cargo_home()?.join("registry/src");
    for registry in fs::read_dir(&sources).with_context(|| format!("{} cannot be read", sources.display()))? {
        prefixes.push((registry?.path(), "/dependencies"));
    }
    let library = toolchain.library_source();
    if let Ok(real) = library.canonicalize().map(|real| (real, "/rust/library")) {
        prefixes.push(real);
    }
    prefixes.push((library, "/rust/library"));
    Ok(prefixes)
}

fn cargo_home() -> Result<PathBuf> {
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => {
            PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?).join(".cargo")
        }
    };
    Ok(home)
}

/// A path of the building machine in the object would make it differ from machine to machine.
fn refuse_local_paths(workspace: &Workspace, toolchain: &BpfToolchain, object: &[u8]) -> Result<()> {
    for (local, _) in path_prefixes(workspace, toolchain)? {
        let needle = local.as_os_str().as_encoded_bytes();
        if object.windows(needle.len()).any(|window| window == needle) {
            bail!(
                "the built BPF object contains the local path {}: it would not be reproducible",
                local.display()
            );
        }
    }
    Ok(())
}

fn keep(workspace: &Workspace, object: &[u8], built_by: &Identity, kept_by: Option<&Identity>) -> Result<()> {
    let path = workspace.kept_object();
    write(&path, object)?;
    write(&workspace.kept_toolchain(), built_by.to_string().as_bytes())?;
    eprintln!("xtask: wrote {} ({} bytes)", path.display(), object.len());
    if let Some(kept_by) = kept_by.filter(|kept_by| *kept_by != built_by) {
        eprintln!(
            "xtask: before, the kept object came from {}; to commit a change, rebuild with that tool chain: CI checks with it",
            kept_by.line()
        );
    }
    Ok(())
}

fn check(
    workspace: &Workspace,
    object: &[u8],
    built_by: &Identity,
    kept_by: Option<&Identity>,
) -> Result<()> {
    let path = workspace.kept_object();
    let kept = fs::read(&path)
        .with_context(|| format!("{} cannot be read: run `cargo xtask build-ebpf`", path.display()))?;
    let Some(kept_by) = kept_by else {
        bail!("{} is missing: run `cargo xtask build-ebpf`", workspace.kept_toolchain().display());
    };
    if kept == object {
        eprintln!("xtask: {} is what the source gives ({} bytes)", path.display(), kept.len());
        return Ok(());
    }
    if kept_by != built_by {
        bail!(
            "the kept BPF object cannot be checked with this tool chain ({}): it was built with {}",
            built_by.line(),
            kept_by.line()
        );
    }
    let differs = kept.iter().zip(object).position(|(kept, built)| kept != built);
    bail!(
        "{} is not what the source gives: {} bytes are kept, {} were built, the first difference is at byte {}; \
         run `cargo xtask build-ebpf` and commit the result",
        path.display(),
        kept.len(),
        object.len(),
        differs.unwrap_or(kept.len().min(object.len()))
    );
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    // An equal file is left alone, so that cargo does not rebuild what embeds it.
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}
