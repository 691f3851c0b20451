//! What opens bpfprof's outputs in the tests: packages of npm, of the versions in their lock file, kept in the target folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{process::run, workspace::Workspace};

/// Where the packages are listed, below the root.
const LISTS: &str = "tests/pages";
const LOCK: &str = "package-lock.json";

/// The folder that the packages are installed in; the tests leave pictures there.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("pages")
}

/// Installs the packages, unless those of this lock file are there.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    let folder = folder(workspace);
    let lists = workspace.root().join(LISTS);
    if installed(&folder.join("node_modules").join(LOCK), &lists.join(LOCK))? {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    for list in ["package.json", LOCK] {
        fs::copy(lists.join(list), folder.join(list)).with_context(|| format!("{list} cannot be copied"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
    run(&mut npm)?;
    // Last, so that an installation that broke off is begun again.
    fs::copy(lists.join(LOCK), folder.join("node_modules").join(LOCK))
        .context("the lock file cannot be copied")?;
    Ok(())
}

fn installed(copy: &Path, lock: &Path) -> Result<bool> {
    match fs::read(copy) {
        Ok(copy) => Ok(copy == fs::read(lock).with_context(|| format!("{} cannot be read", lock.display()))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", copy.display())),
    }
}
