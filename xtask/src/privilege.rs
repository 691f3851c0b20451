//! Running commands as root.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
};

use crate::process::find_on_path;

/// How this process can run something as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// It is root.
    Root,
    /// Through sudo, which asks for a password where it must.
    Sudo,
    /// Not at all, and why.
    None(&'static str),
}

impl Privilege {
    /// Finds out, and lets sudo ask for the password now rather than in the middle of the work.
    pub(crate) fn acquire() -> Self {
        // The owner of a process's folder in /proc is its effective user (proc(5)).
        if fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0) {
            return Self::Root;
        }
        if find_on_path("sudo").is_none() {
            return Self::None("this user is not root and sudo is not installed");
        }
        eprintln!("xtask: root is needed from here on: sudo is used");
        let granted = Command::new("sudo").arg("-v").stdout(Stdio::null()).status();
        if granted.is_ok_and(|status| status.success()) {
            Self::Sudo
        } else {
            Self::None("this user is not root and sudo refused")
        }
    }

    /// A command that runs `program` as root with this environment, or why that is impossible.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, &'static str> {
        match self {
            Self::Root => Ok(Command::new(program)),
            Self::Sudo => {
                let mut command = Command::new("sudo");
                command.args(["-E", "--"]).arg(program);
                Ok(command)
            }
            Self::None(reason) => Err(reason),
        }
    }
}
