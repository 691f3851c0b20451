//! A cgroup by its folder or its path.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};

/// The kernel's identifier of a cgroup of version 2, and its depth.
pub(super) struct Cgroup {
    pub id: u64,
    pub level: u32,
    /// Its path as `/proc/PID/cgroup` shows it.
    pub path: String,
}

/// Finds the cgroup: a folder below a mount of the hierarchy, or a path in it as `/proc/PID/cgroup` shows it.
pub(super) fn find(path: &Path) -> anyhow::Result<Cgroup> {
    let root = mount_point(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()).context(
        "there is no cgroup v2 hierarchy on this machine; mount one with `mount -t cgroup2 none /mnt`",
    )?;
    let in_hierarchy = root.join(path.strip_prefix("/").unwrap_or(path));
    let folder = [path, in_hierarchy.as_path()].into_iter().find_map(|path| fs::canonicalize(path).ok());
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        bail!("no cgroup {}: neither a folder nor a path below {}", path.display(), root.display());
    };
    let Ok(below) = folder.strip_prefix(&root) else {
        bail!(
            "{} is no cgroup of version 2; bpfprof tells tasks apart by those, which are below {}",
            folder.display(),
            root.display()
        );
    };
    let level = below.components().filter(|part| matches!(part, Component::Normal(_))).count();
    // On 64-bit kernels the identifier is the inode number (kernfs).
    let id = fs::metadata(&folder).with_context(|| format!("cannot read {}", folder.display()))?.ino();
    let path = format!("/{}", below.to_string_lossy());
    Ok(Cgroup { id, level: u32::try_from(level).unwrap_or(u32::MAX), path })
}

/// Where the version 2 hierarchy is mounted. Blanks in the path are written as `\040` (`fstab(5)`).
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, folder, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| folder.replace("\\040", " ").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_among_the_mounts() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/c\\040g cgroup2 rw 0 0\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/c g".into()));
        assert_eq!(mount_point("proc /proc proc rw 0 0"), None);
    }
}
