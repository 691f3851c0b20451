//! Calling cargo.

use std::{env, ffi::OsString, process::Command};

use anyhow::{Context, Result};

use crate::{process::stdout_of, workspace::Workspace};

/// The BPF crate builds for its own target alone and is left out of all that is done to the workspace.
pub(crate) const WITHOUT_EBPF: [&str; 3] = ["--workspace", "--exclude", "profiler-ebpf"];

/// The cargo that runs this program, else the one on PATH, in the root of the workspace.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(program());
    command.current_dir(workspace.root());
    command.env("CARGO_TARGET_DIR", workspace.target());
    forget_xtask(&mut command);
    command
}

/// Where cargo is.
pub(crate) fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo describes xtask to xtask; build scripts of other packages must not see that as theirs.
pub(crate) fn forget_xtask(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BIN_"))
        {
            command.env_remove(name);
        }
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
}

/// The host's target triple, as rustc names it.
pub(crate) fn host_triple() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = stdout_of(Command::new(rustc).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}
