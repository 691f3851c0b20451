//! Where processes write the names of code that they make at run time: `/tmp/perf-PID.map` of their own root and pid namespace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::time::{ClockId, clock_gettime};

use super::super::root::Root;
use super::super::{FileStamp, scan};
use crate::types::Tgid;

/// Folders that are held open.
const MAX_FOLDERS: usize = 256;

/// How much older than its process a map may look, in seconds: both times are rounded.
const ROUNDING: i64 = 2;

/// Temporary folders by device and inode: most processes share one.
#[derive(Default)]
pub(super) struct Folders(HashMap<(u64, u64), Arc<OwnedFd>>);

/// A process that may write a map.
pub(super) struct Writer {
    /// Its id in its own pid namespace, which is the one in the file's name.
    namespace_pid: u32,
    /// Users that its file may belong to.
    users: Vec<u32>,
    /// When it began, in seconds since 1970: a map from before is that of another process of the same id.
    began: i64,
    folder: Arc<OwnedFd>,
    /// The map once it was there: it may be removed before it is read.
    map: Option<Arc<File>>,
}

impl Folders {
    fn of(&mut self, tgid: Tgid) -> io::Result<Arc<OwnedFd>> {
        let folder = Root::of(tgid)?.open_folder(Path::new("/tmp"))?;
        let stamp = FileStamp::of(&File::from(folder.try_clone()?)).ok_or(io::ErrorKind::NotFound)?;
        let place = (stamp.device, stamp.inode);
        if self.0.len() >= MAX_FOLDERS && !self.0.contains_key(&place) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(Arc::clone(self.0.entry(place).or_insert_with(|| folder.into())))
    }
}

impl Writer {
    /// That of a process that lives.
    pub(super) fn of(tgid: Tgid, folders: &mut Folders) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{tgid}/status"))?;
        let numbers = |field: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
        };
        let namespace_pid = numbers("NSpid:").last().copied().unwrap_or(tgid.0);
        let age = scan::age(tgid).and_then(|age| i64::try_from(age.as_secs()).ok());
        let began = age.map_or(i64::MIN, |age| clock_gettime(ClockId::Realtime).tv_sec - age);
        let folder = folders.of(tgid)?;
        Ok(Self { namespace_pid, users: numbers("Uid:"), began, folder, map: None })
    }

    /// The id of the process in its own pid namespace.
    pub(super) fn namespace_pid(&self) -> u32 {
        self.namespace_pid
    }

    /// Whether a map was there.
    pub(super) fn holds_map(&self) -> bool {
        self.map.is_some()
    }

    /// Keeps the map open if it is there.
    pub(super) fn hold(&mut self) -> bool {
        self.map = self.open().ok().map(Arc::new);
        self.map.is_some()
    }

    /// The file at its place now, else the one that was held.
    pub(super) fn map(&self) -> io::Result<Arc<File>> {
        match (self.open(), &self.map) {
            (Ok(map), _) => Ok(Arc::new(map)),
            (Err(_), Some(map)) => Ok(Arc::clone(map)),
            (Err(error), None) => Err(error),
        }
    }

    fn open(&self) -> io::Result<File> {
        // The file is a stranger's: no link out of the folder, no waiting for a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let name = format!("perf-{}.map", self.namespace_pid);
        let file = File::from(rustix::fs::openat2(&*self.folder, name, flags, Mode::empty(), resolve)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if metadata.uid() != 0 && !self.users.contains(&metadata.uid()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // One that was moved there was changed then.
        if metadata.mtime().max(metadata.ctime()) < self.began.saturating_sub(ROUNDING) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    /// A process whose `/tmp` is this folder.
    fn writer_in(folder: &Path, users: Vec<u32>) -> Writer {
        let folder = File::open(folder).map(OwnedFd::from).map(Arc::new).unwrap();
        Writer { namespace_pid: 3, users, began: 0, folder, map: None }
    }

    fn text(writer: &Writer) -> String {
        let mut text = String::new();
        writer.map().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_map_is_found_by_the_pid_in_its_own_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().metadata().unwrap().uid();
        fs::write(folder.path().join("perf-3.map"), "1000 10 f").unwrap();
        fs::write(folder.path().join("perf-7.map"), "1000 10 g").unwrap();
        let mut writer = writer_in(folder.path(), vec![user]);
        assert_eq!(text(&writer), "1000 10 f");
        // Held, also when it is removed.
        assert!(writer.hold());
        fs::remove_file(folder.path().join("perf-3.map")).unwrap();
        assert!(writer.map().is_ok());
        // One that took its place counts.
        fs::write(folder.path().join("perf-3.map"), "1000 10 fresh").unwrap();
        assert_eq!(text(&writer), "1000 10 fresh");
    }

    #[test]
    fn links_and_strangers_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer_in(folder.path(), vec![u32::MAX - 1]);
        let map = folder.path().join("perf-3.map");
        symlink("/etc/passwd", &map).unwrap();
        assert!(writer.map().is_err());
        fs::remove_file(&map).unwrap();
        fs::write(&map, "1000 10 f").unwrap();
        std::os::unix::fs::chown(&map, Some(65534), None).unwrap();
        assert_eq!(writer.map().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_map_from_before_the_process_is_not_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let map = folder.path().join("perf-3.map");
        fs::write(&map, "1000 10 f").unwrap();
        let written = map.metadata().unwrap();
        let mut writer = writer_in(folder.path(), vec![written.uid()]);
        writer.began = written.mtime() + 1;
        assert!(writer.map().is_ok(), "times are rounded");
        writer.began = written.mtime() + 10;
        assert_eq!(writer.map().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn this_process_has_its_own_pid() {
        let this = Tgid(std::process::id());
        let writer = Writer::of(this, &mut Folders::default()).unwrap();
        assert_eq!(writer.namespace_pid, this.0);
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        assert!((now - 3600..=now + ROUNDING).contains(&writer.began), "{} {now}", writer.began);
    }
}
