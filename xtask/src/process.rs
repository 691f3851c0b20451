//! Running other programs.

use std::{
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Runs a command with this program's streams; anything but success is an error that shows the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("`{}` cannot be started", line_of(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line_of(command));
    }
    Ok(())
}

/// Runs a command and returns its stdout; stderr goes through.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{}` cannot be started", line_of(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line_of(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command that only asks a question: its stdout when it succeeds, `None` when it does not or is missing.
pub(crate) fn answer_of(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Finds an executable file on PATH.
pub(crate) fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_executable(file))
}

/// Whether this is a file that someone may execute.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The command line as a reader would type it, environment left out.
fn line_of(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
