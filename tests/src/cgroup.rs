//! Control groups (version 2) made for a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::host;

/// A cgroup of its own, removed when it is dropped. Its processes must have ended by then.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Makes one below the root of the hierarchy; `None` when version 2 is not mounted.
    pub fn new(name: &str) -> Result<Option<Self>> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("reading the mounts")?;
        let mut version_2 = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (folder, kind) = (fields.next()?, fields.next()?);
            (kind == "cgroup2").then_some(folder)
        });
        let Some(root) = version_2.next() else { return Ok(None) };
        Self::make(Path::new(root).join(format!("{name}-{}", std::process::id()))).map(Some)
    }

    /// Makes one inside.
    pub fn child(&self, name: &str) -> Result<Self> {
        Self::make(self.folder.join(name))
    }

    /// Its folder, which names it on the command line.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command that runs a workload of this package inside.
    #[must_use]
    pub fn workload(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo $$ > "$1/cgroup.procs" && shift && exec "$@""#, "sh"]);
        command.arg(&self.folder).arg(host::workload(name)).args(arguments);
        command
    }

    fn make(folder: PathBuf) -> Result<Self> {
        fs::create_dir(&folder).with_context(|| format!("making the cgroup {}", folder.display()))?;
        Ok(Self { folder })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel lets go of a killed process a moment after its parent has waited for it.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("the cgroup {} could not be removed", self.folder.display());
    }
}
