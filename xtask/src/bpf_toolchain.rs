//! The tool chains that can compile the BPF programs: rustup's nightly with rust-src, or Debian's rustc-web with rust-web-src.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, bail};

use crate::{
    cargo::cargo,
    process::{answer_of, find_on_path, is_executable},
    workspace::Workspace,
};

/// The version of bpf-linker that the kept object is linked with.
pub(crate) const BPF_LINKER_VERSION: &str = "0.13.0";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CLIPPY: &str = "/usr/bin/clippy-driver";

/// A compiler for the BPF target with the source of `core`, and a linker.
pub(crate) struct BpfToolchain {
    compiler: Compiler,
    sysroot: PathBuf,
    linker: PathBuf,
    identity: Identity,
}

/// What decides the bytes of the object, besides the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity(String);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compiler {
    /// `rustup run nightly`.
    Nightly,
    /// Debian's rustc-web, a released compiler told to accept unstable options.
    Debian,
}

impl BpfToolchain {
    /// Finds a tool chain: the one that has the `wanted` identity if it is there, else nightly, else Debian's.
    pub(crate) fn find(workspace: &Workspace, wanted: Option<&Identity>) -> Result<Self> {
        let linker = find_linker(workspace)?;
        let mut found = Vec::new();
        let mut lacking = Vec::new();
        for compiler in [Compiler::Nightly, Compiler::Debian] {
            match Self::with_compiler(compiler, &linker) {
                Ok(toolchain) => found.push(toolchain),
                Err(reason) => lacking.push(reason.to_string()),
            }
        }
        let best = found.iter().position(|toolchain| Some(&toolchain.identity) == wanted).unwrap_or(0);
        if found.is_empty() {
            bail!("no compiler for the BPF target: {}", lacking.join("; or "));
        }
        Ok(found.swap_remove(best))
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The source of the standard library.
    pub(crate) fn library_source(&self) -> PathBuf {
        library_source(&self.sysroot)
    }

    /// A cargo that compiles with this tool chain, deaf to flags and profiles set by the environment or by the user.
    pub(crate) fn cargo(&self, workspace: &Workspace) -> Command {
        let mut command = match self.compiler {
            Compiler::Nightly => {
                let mut command = rustup_nightly("cargo");
                command.current_dir(workspace.root());
                command
            }
            Compiler::Debian => cargo(workspace),
        };
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(changes_the_build) {
                command.env_remove(name);
            }
        }
        // Empty means none, also for a wrapper named in a configuration file.
        command.env("RUSTC_WRAPPER", "").env("CARGO_INCREMENTAL", "0");
        if self.compiler == Compiler::Debian {
            command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        }
        let linker_dir = self.linker.parent().map(Path::to_owned);
        let path = env::var_os("PATH").unwrap_or_default();
        if let Ok(path) = env::join_paths(linker_dir.into_iter().chain(env::split_paths(&path))) {
            command.env("PATH", path);
        }
        command
    }

    /// The driver of clippy that belongs to the compiler, or where it would come from.
    pub(crate) fn clippy_driver(&self) -> Result<PathBuf, &'static str> {
        let (driver, source) = match self.compiler {
            Compiler::Nightly => {
                (self.sysroot.join("bin/clippy-driver"), "rustup component add clippy --toolchain nightly")
            }
            Compiler::Debian => (PathBuf::from(DEBIAN_CLIPPY), "apt-get install rust-web-clippy"),
        };
        if is_executable(&driver) { Ok(driver) } else { Err(source) }
    }

    fn with_compiler(compiler: Compiler, linker: &Linker) -> Result<Self> {
        let (mut rustc, hint) = match compiler {
            Compiler::Nightly => (
                rustup_nightly("rustc"),
                "rustup's nightly with rust-src (`rustup toolchain install nightly --component rust-src`)",
            ),
            Compiler::Debian => (
                debian_rustc(),
                "Debian's rustc-web and rust-web-src (`cargo xtask setup-ebpf`, or `apt-get install rustc-web rust-web-src`)",
            ),
        };
        let sysroot = answer_of(rustc.args(["--print", "sysroot"])).map(PathBuf::from);
        let sysroot = sysroot
            .filter(|sysroot| library_source(sysroot).join("core/src/lib.rs").is_file())
            .with_context(|| format!("{hint} is missing"))?;
        let mut rustc = match compiler {
            Compiler::Nightly => rustup_nightly("rustc"),
            Compiler::Debian => debian_rustc(),
        };
        let version = answer_of(rustc.arg("-vV")).context("`rustc -vV` failed")?;
        let name = version.lines().next().unwrap_or_default();
        let llvm = version.lines().find(|line| line.starts_with("LLVM version")).unwrap_or_default();
        let identity = Identity(format!("{name}\n{llvm}\nbpf-linker {}\n", linker.version));
        Ok(Self { compiler, sysroot, linker: linker.path.clone(), identity })
    }
}

impl Identity {
    /// Reads back what `to_string` wrote.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The identity in one line, for messages.
    pub(crate) fn line(&self) -> String {
        self.0.trim().replace('\n', ", ")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bpf-linker that `build-ebpf` would use, if its version is the pinned one.
pub(crate) fn pinned_linker(workspace: &Workspace) -> Option<PathBuf> {
    find_linker(workspace)
        .ok()
        .filter(|linker| linker.version == BPF_LINKER_VERSION)
        .map(|linker| linker.path)
}

struct Linker {
    path: PathBuf,
    version: String,
}

/// The pinned version, from PATH or from the workspace's tools, else whichever there is.
fn find_linker(workspace: &Workspace) -> Result<Linker> {
    let own = workspace.tools().join("bin/bpf-linker");
    let candidates =
        find_on_path("bpf-linker").into_iter().chain(Some(own).filter(|path| is_executable(path)));
    let mut linkers: Vec<_> = candidates
        .filter_map(|path| {
            let answer = answer_of(Command::new(&path).arg("--version"))?;
            let version = answer.strip_prefix("bpf-linker ")?.to_owned();
            Some(Linker { path, version })
        })
        .collect();
    if linkers.is_empty() {
        return Err(anyhow!(
            "bpf-linker is missing: `cargo install bpf-linker --version {BPF_LINKER_VERSION}`, or on Debian `cargo xtask setup-ebpf`"
        ));
    }
    let best = linkers.iter().position(|linker| linker.version == BPF_LINKER_VERSION).unwrap_or(0);
    Ok(linkers.swap_remove(best))
}

fn library_source(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library")
}

fn rustup_nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]);
    // Looking for a tool chain must not install one.
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("LD_LIBRARY_PATH");
    command
}

fn debian_rustc() -> Command {
    let mut command = Command::new(DEBIAN_RUSTC);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Variables by which the environment changes what cargo and rustc make of the source.
fn changes_the_build(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "CARGO",
        "CARGO_TARGET_DIR",
        "LD_LIBRARY_PATH",
        "RUSTC",
        "RUSTC_BOOTSTRAP",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
    ];
    const PREFIXES: [&str; 4] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_BPFEL_", "CARGO_UNSTABLE_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
