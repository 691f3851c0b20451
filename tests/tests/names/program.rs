//! Builds of one C program that differ in the name of the function it spends its time in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A folder of programs, removed when dropped.
pub(crate) struct Workshop {
    folder: TempDir,
}

impl Workshop {
    /// An empty one.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir().context("making a folder")? })
    }

    /// Path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program called `name` that burns in `function`.
    pub(crate) fn build(&self, name: &str, function: &str, flags: &[&str]) -> Result<PathBuf> {
        self.build_with("gcc", name, function, flags)
    }

    /// The same by another compiler.
    pub(crate) fn build_with(&self, cc: &str, name: &str, function: &str, flags: &[&str]) -> Result<PathBuf> {
        let (program, source) = (self.path(name), workload("burn.c"));
        let mut command = Command::new(cc);
        command.args(["-O1", "-g", "-fno-omit-frame-pointer", &format!("-DFUNCTION={function}"), "-o"]);
        run(command.arg(&program).arg(source).args(flags))?;
        Ok(program)
    }

    /// A shared object whose `work` burns in `function`.
    pub(crate) fn build_plugin(&self, name: &str, function: &str) -> Result<PathBuf> {
        self.build(name, function, &["-shared", "-fPIC", "-DPLUGIN"])
    }

    /// The split unit (`.dwo`) of a program just built with `-gsplit-dwarf`.
    pub(crate) fn split_unit(&self) -> Result<PathBuf> {
        let files = fs::read_dir(self.folder.path())?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut units = files.filter(|path| path.extension().is_some_and(|extension| extension == "dwo"));
        units.next().context("no unit was split off")
    }

    /// A stripped copy called `name`.
    pub(crate) fn strip(&self, program: &Path, name: &str) -> Result<PathBuf> {
        let stripped = self.path(name);
        run(Command::new("objcopy").arg("--strip-all").arg(program).arg(&stripped))?;
        Ok(stripped)
    }

    /// The debug information of a program in a file of its own, at this path.
    pub(crate) fn split_debug(&self, program: &Path, to: &str) -> Result<PathBuf> {
        let debug = self.path(to);
        fs::create_dir_all(debug.parent().context("a file without a folder")?)?;
        run(Command::new("objcopy").arg("--only-keep-debug").arg(program).arg(&debug))?;
        Ok(debug)
    }
}

/// A file of `tests/workloads`.
pub(crate) fn workload(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads").join(name)
}

/// The build id in a program's notes, in hexadecimal.
pub(crate) fn build_id(program: &Path) -> Result<String> {
    let readelf = Command::new("readelf").arg("-n").arg(program).output().context("running readelf")?;
    let text = String::from_utf8_lossy(&readelf.stdout).into_owned();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    Ok(line.context("the program has no build id")?.to_owned())
}

/// Runs a command, which must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// Whether a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
