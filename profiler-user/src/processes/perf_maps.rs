//! Where processes that make code at run time write its names: `/tmp/perf-PID.map` of their own root and pid namespace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::identity::FileStamp;
use super::root::Root;
use crate::types::Tgid;

/// Processes with code of their own making that are remembered.
const MAX_PROCESSES: usize = 16_384;

/// Maps, and as many folders, that are held open.
const MAX_OPEN: usize = 256;

/// The places of perf maps, noted while their processes live.
/// Bounded: what comes after the bounds has no names.
#[derive(Default)]
pub struct PerfMaps {
    processes: HashMap<Tgid, Option<Writer>>,
    /// Temporary folders by device and inode: most processes share one.
    folders: HashMap<(u64, u64), Arc<OwnedFd>>,
    /// Maps held open.
    open: usize,
}

/// A process that may write a map.
struct Writer {
    /// Its id in its own pid namespace, which is the one in the file's name.
    namespace_pid: u32,
    /// Users that its file may belong to.
    users: Vec<u32>,
    folder: Arc<OwnedFd>,
    /// The map once it was there: it may be removed before it is read.
    map: Option<Arc<File>>,
}

impl PerfMaps {
    /// Notes where this process writes its map, and opens it if it is there. To be called while the process lives, and again
    /// when it makes more code.
    pub(super) fn notice(&mut self, tgid: Tgid) {
        if !matches!(self.processes.get(&tgid), Some(Some(_))) {
            if self.processes.len() >= MAX_PROCESSES {
                return;
            }
            let writer = self.writer(tgid).ok();
            self.processes.insert(tgid, writer);
        }
        if let Some(Some(writer)) = self.processes.get_mut(&tgid)
            && writer.map.is_none()
            && self.open < MAX_OPEN
        {
            writer.map = writer.open().ok().map(Arc::new);
            self.open += usize::from(writer.map.is_some());
        }
    }

    /// The map of a process: the file at its place now, since maps are also written at the end and put in the place of older ones (as
    /// perf-map-agent does); else the one that was there.
    ///
    /// # Errors
    ///
    /// When there is none, or it belongs neither to root nor to the process's user, or is no regular file.
    pub fn open(&self, tgid: Tgid) -> io::Result<Arc<File>> {
        let writer = self.processes.get(&tgid).and_then(Option::as_ref).ok_or(io::ErrorKind::NotFound)?;
        match (writer.open(), &writer.map) {
            (Ok(map), _) => Ok(Arc::new(map)),
            (Err(_), Some(map)) => Ok(Arc::clone(map)),
            (Err(error), None) => Err(error),
        }
    }

    fn writer(&mut self, tgid: Tgid) -> io::Result<Writer> {
        let status = fs::read_to_string(format!("/proc/{tgid}/status"))?;
        let numbers = |field: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
        };
        let namespace_pid = numbers("NSpid:").last().copied().unwrap_or(tgid.0);
        let folder = self.folder(tgid)?;
        Ok(Writer { namespace_pid, users: numbers("Uid:"), folder, map: None })
    }

    fn folder(&mut self, tgid: Tgid) -> io::Result<Arc<OwnedFd>> {
        let folder = Root::of(tgid)?.open_folder(Path::new("/tmp"))?;
        let stamp = FileStamp::of(&File::from(folder.try_clone()?)).ok_or(io::ErrorKind::NotFound)?;
        let place = (stamp.device, stamp.inode);
        if self.folders.len() >= MAX_OPEN && !self.folders.contains_key(&place) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(Arc::clone(self.folders.entry(place).or_insert_with(|| folder.into())))
    }
}

impl Writer {
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
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    /// A map of this process below a folder that stands in for its `/tmp`.
    fn maps_in(folder: &Path, users: Vec<u32>) -> PerfMaps {
        let folder = File::open(folder).map(OwnedFd::from).map(Arc::new).unwrap();
        let mut maps = PerfMaps::default();
        maps.processes.insert(Tgid(7), Some(Writer { namespace_pid: 3, users, folder, map: None }));
        maps
    }

    #[test]
    fn a_map_is_found_by_the_pid_in_its_own_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().metadata().unwrap().uid();
        fs::write(folder.path().join("perf-3.map"), "1000 10 f").unwrap();
        fs::write(folder.path().join("perf-7.map"), "1000 10 g").unwrap();
        let mut text = String::new();
        let mut maps = maps_in(folder.path(), vec![user]);
        maps.open(Tgid(7)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1000 10 f");
        // Held from the first notice on, also when it is removed.
        maps.notice(Tgid(7));
        fs::remove_file(folder.path().join("perf-3.map")).unwrap();
        assert!(maps.open(Tgid(7)).is_ok());
        // One that took its place counts.
        fs::write(folder.path().join("perf-3.map"), "1000 10 fresh").unwrap();
        text.clear();
        maps.open(Tgid(7)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1000 10 fresh");
    }

    #[test]
    fn links_and_strangers_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let maps = maps_in(folder.path(), vec![u32::MAX - 1]);
        let map = folder.path().join("perf-3.map");
        symlink("/etc/passwd", &map).unwrap();
        assert!(maps.open(Tgid(7)).is_err());
        fs::remove_file(&map).unwrap();
        fs::write(&map, "1000 10 f").unwrap();
        std::os::unix::fs::chown(&map, Some(65534), None).unwrap();
        assert_eq!(maps.open(Tgid(7)).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(maps.open(Tgid(8)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn this_process_is_noticed() {
        let mut maps = PerfMaps::default();
        let this = Tgid(std::process::id());
        maps.notice(this);
        assert!(matches!(maps.processes.get(&this), Some(Some(writer)) if writer.namespace_pid == this.0));
    }
}
