//! Cross-building for aarch64: Debian's compiler with the standard library of its arm64 package, since rustup may have no such target installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{lane::Machine, packages::Packages};
use crate::process::{answer_of, stdout_of};

const RUSTC: &str = "/usr/bin/rustc";
const LIBRARY_PACKAGE: &str = "libstd-rust-web-dev";

/// A standard library for aarch64 that the host's compiler takes.
pub(super) struct Sysroot {
    folder: PathBuf,
}

impl Sysroot {
    /// Finds or fetches the library of the same version as Debian's compiler here. `packages` opens the arm64 packages.
    pub(super) fn fetch<'p>(folder: &Path, packages: impl FnOnce() -> Result<&'p Packages>) -> Result<Self> {
        let compiler = version_of_compiler()?;
        let sysroot = Self { folder: folder.join(format!("sysroot-{compiler}")) };
        if !sysroot.is_complete() {
            let package = format!("{LIBRARY_PACKAGE}={compiler}");
            let unpacked = folder.join("sysroot-new");
            // An interrupted run may have left a part.
            let _ = fs::remove_dir_all(&unpacked);
            packages()?.unpack(&package, "./usr/lib/rustlib/*", &unpacked).with_context(|| {
                format!("the standard library of the installed rustc-web {compiler} cannot be had for arm64; upgrade rustc-web")
            })?;
            fs::rename(unpacked.join("usr"), &sysroot.folder)
                .with_context(|| format!("{} cannot be put in place", sysroot.folder.display()))?;
            ensure!(
                sysroot.is_complete(),
                "{LIBRARY_PACKAGE} holds no library for {}",
                Machine::Aarch64.triple()
            );
        }
        Ok(sysroot)
    }

    /// For rustc's `--sysroot`.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The compiler that the library goes with.
    pub(super) fn rustc(&self) -> &'static str {
        RUSTC
    }

    fn is_complete(&self) -> bool {
        self.folder.join("lib/rustlib").join(Machine::Aarch64.triple()).is_dir()
    }
}

/// Debian's version of the host's compiler, as in 1.96.0+dfsg1-1.
fn version_of_compiler() -> Result<String> {
    // The file must be the package's, not something else that was put at its path.
    let owner = answer_of(Command::new("dpkg-query").args(["-S", RUSTC])).unwrap_or_default();
    ensure!(owner.starts_with("rustc-web:"), "{RUSTC} is not of the Debian package rustc-web; install that");
    stdout_of(Command::new("dpkg-query").args(["-W", "-f=${Version}", "rustc-web"]))
}
