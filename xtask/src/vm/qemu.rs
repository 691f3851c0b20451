//! Which QEMU runs a lane: the host's, else Debian's, fetched and run from a folder.
//!
//! It is not installed: a host that has other parts of QEMU from elsewhere might have to give them up for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    lane::Machine,
    packages::{Packages, only_file_with_prefix},
};
use crate::process::{find_on_path, stdout_of};

/// An emulator that can be started.
pub(super) struct Qemu {
    program: &'static str,
    /// Holds the emulator with all that it needs, down to the C library; `None` for the host's own.
    root: Option<PathBuf>,
}

impl Qemu {
    /// The host's emulator of this machine, or one fetched into `folder`.
    pub(super) fn find_or_fetch(folder: &Path, machine: Machine) -> Result<Self> {
        let (program, package) = match machine {
            Machine::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Machine::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        };
        if find_on_path(program).is_some() {
            return Ok(Self { program, root: None });
        }
        let root = folder.join(package);
        if !root.exists() {
            fetch(folder, package, &root)?;
        }
        Ok(Self { program, root: Some(root) })
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        self.program
    }

    /// Starts it.
    pub(super) fn command(&self) -> Result<Command> {
        let Some(root) = &self.root else {
            return Ok(Command::new(self.program));
        };
        let incomplete =
            || format!("{} is incomplete; remove it, so that it is fetched anew", root.display());
        // Where Debian puts the libraries of an architecture.
        let is_of_host = |triplet: &&str| root.join("lib").join(triplet).is_dir();
        let triplet = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
            .into_iter()
            .find(is_of_host)
            .with_context(incomplete)?;
        let libraries = [root.join("lib").join(triplet), root.join("usr/lib").join(triplet)];
        let loader = only_file_with_prefix(&libraries[0], "ld-linux-").with_context(incomplete)?;
        let mut command = Command::new(loader);
        command
            .arg("--library-path")
            .arg(libraries.each_ref().map(|path| path.display().to_string()).join(":"));
        command.env("QEMU_MODULE_DIR", libraries[1].join("qemu"));
        command.arg(root.join("usr/bin").join(self.program));
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(root.join(firmware));
        }
        Ok(command)
    }
}

fn fetch(folder: &Path, package: &str, root: &Path) -> Result<()> {
    let host = stdout_of(Command::new("dpkg").arg("--print-architecture"))?;
    let host = host.trim();
    let unpacked = folder.join("qemu-new");
    // An interrupted run may have left a part.
    let _ = fs::remove_dir_all(&unpacked);
    Packages::update(&folder.join("apt").join(format!("{host}-host")), host)?
        .unpack_with_dependencies(package, &unpacked)?;
    fs::rename(&unpacked, root).with_context(|| format!("{} cannot be put in place", root.display()))
}
