//! A control group (version 2) made for a measurement.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

/// A cgroup of its own, removed when this is dropped. Its processes must have ended by then.
pub(super) struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// Makes one below the root of the hierarchy.
    pub(super) fn make() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("the mounts cannot be read")?;
        let root = cgroup2_mount(&mounts).context("no cgroup file system of version 2 is mounted")?;
        let directory = Path::new(root).join(format!("bpfprof-bench-{}", std::process::id()));
        fs::create_dir(&directory)
            .with_context(|| format!("the cgroup {} cannot be made", directory.display()))?;
        Ok(Self { directory })
    }

    /// Its directory, which names it on the command line.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process leaves its cgroup a moment after its parent has waited for it.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("xtask: the cgroup {} could not be removed", self.directory.display());
    }
}

/// Where version 2 is mounted, beside version 1 or alone.
fn cgroup2_mount(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (directory, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(directory)
    })
}

#[cfg(test)]
mod tests {
    use super::cgroup2_mount;

    #[test]
    fn version_2_is_found_beside_version_1() {
        let version_1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let both = format!("{version_1}cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
        assert_eq!(cgroup2_mount(&both), Some("/sys/fs/cgroup/unified"));
        assert_eq!(cgroup2_mount(version_1), None);
    }
}
