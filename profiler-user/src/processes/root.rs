//! Root folders: where the paths of a process begin.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};

use super::directory;
use crate::types::Tgid;

/// Root folder of a process: of its container, its `chroot`, or the one that bpfprof has.
#[derive(Clone, Debug, Default)]
pub struct Root(Option<Arc<OwnedFd>>);

/// The roots seen, each held open once.
#[derive(Default)]
pub(super) struct Roots(Vec<(Place, Root)>);

/// What makes two root folders the same: mount and inode.
type Place = (u64, u64);

/// More roots than this are not held open: files below the others are found only where they are the same in ours.
const MAX_ROOTS: usize = 256;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    /// The root of bpfprof.
    #[must_use]
    pub fn ours() -> Self {
        Self(None)
    }

    /// The root that a process has now.
    ///
    /// # Errors
    ///
    /// When it is gone, or bpfprof may not see it.
    pub(super) fn of(tgid: Tgid) -> io::Result<Self> {
        let root = rustix::fs::open(directory::of(tgid).join("root"), FOLDER, Mode::empty())?;
        Ok(Self(Some(root.into())))
    }

    /// Opens a regular file as a process with this root would, without touching devices or pipes.
    ///
    /// # Errors
    ///
    /// When there is none at this path.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let found = self.open_path(path, OFlags::PATH | OFlags::CLOEXEC)?;
        open_regular(found)
    }

    /// Opens a folder as a process with this root would, as a place only.
    pub(super) fn open_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(self.open_path(path, FOLDER)?)
    }

    fn open_path(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let open =
            |root: &OwnedFd| rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
        match &self.0 {
            Some(root) => open(root),
            None => open(&rustix::fs::open("/", FOLDER, Mode::empty())?),
        }
    }

    fn place(&self) -> io::Result<Place> {
        let mask = StatxFlags::INO | StatxFlags::MNT_ID;
        let statx = match &self.0 {
            Some(root) => rustix::fs::statx(root, "", AtFlags::EMPTY_PATH, mask)?,
            None => rustix::fs::statx(rustix::fs::CWD, "/", AtFlags::empty(), mask)?,
        };
        Ok((statx.stx_mnt_id, statx.stx_ino))
    }
}

impl Roots {
    /// The root of a process, ours when it cannot be had.
    pub(super) fn of(&mut self, tgid: Tgid) -> Root {
        self.find(tgid).unwrap_or_default()
    }

    fn find(&mut self, tgid: Tgid) -> io::Result<Root> {
        let root = Root::of(tgid)?;
        let place = root.place()?;
        if place == Root::ours().place()? {
            return Ok(Root::ours());
        }
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == place) {
            return Ok(known.clone());
        }
        if self.0.len() >= MAX_ROOTS {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.0.push((place, root.clone()));
        Ok(root)
    }
}

/// Opens what was found as a place only, if it is a regular file.
pub(super) fn open_regular(found: impl AsFd) -> io::Result<File> {
    let found = found.as_fd();
    if !File::from(found.try_clone_to_owned()?).metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Another process may hold a lease on the file, and would delay who waits for it by `lease-break-time` (fcntl(2)).
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?;
    Ok(opened.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn links_lead_to_where_they_would_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/passwd"), "inside").unwrap();
        symlink("/etc/passwd", folder.path().join("absolute")).unwrap();
        symlink("../../../../etc/passwd", folder.path().join("upward")).unwrap();
        let root = Root(Some(Arc::new(File::open(folder.path()).unwrap().into())));
        for path in ["/absolute", "upward", "/../etc/passwd"] {
            assert_eq!(io::read_to_string(root.open(Path::new(path)).unwrap()).unwrap(), "inside", "{path}");
        }
    }

    #[test]
    fn nothing_but_regular_files_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [socket.as_path(), folder.path(), Path::new("/dev/null"), Path::new("/proc/self/exe/x")] {
            assert!(Root::ours().open(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn our_own_root_is_not_held() {
        let mut roots = Roots::default();
        assert!(roots.of(Tgid(std::process::id())).0.is_none());
        assert!(roots.0.is_empty());
    }
}
