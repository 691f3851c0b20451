//! Objects: the files that processes execute, opened at first sight and kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use profiler_common::mapping::FileKey;
use rustix::process::{Resource, getrlimit};

use super::identity::{FileStamp, Identity, build_id, is_elf};
use super::jit::{self, JitCode};
use super::object::{BackingFile, Object};
use super::opening::open_mapped;
use super::paths::{is_anonymous, is_in_memory, short_name};
use super::root::{Root, Roots};
use super::unreadable::Unreadable;
use crate::kernel::{Mapped, MappedFile};
use crate::types::Tgid;

/// Number of an object in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u32);

impl ObjectId {
    /// The number, as the kernel side carries it in frames.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The object that the kernel side calls by this number, which it was given by [`Self::number`].
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// All objects seen, each once however many processes map it.
///
/// Those that nothing refers to are dropped ([`Objects::forget`]); their numbers are not used again.
pub struct Objects {
    objects: BTreeMap<ObjectId, Object>,
    next: u32,
    by_identity: HashMap<Identity, ObjectId>,
    /// `None` for files that hold no object: memory that a process makes code in.
    by_mapping: HashMap<MappingKey, Option<ObjectId>>,
    /// By the files that were opened: an object has as many as there are copies of it.
    by_file: HashMap<FileKey, ObjectId>,
    jit_code: JitCode,
    roots: Roots,
    seen: u64,
    /// What `seen` was at the last call of [`Objects::forget`], and how many objects the next one lets pass.
    seen_before: u64,
    enough: usize,
    /// Objects that are open now, and how many may be.
    open: usize,
    max_open: usize,
}

/// What a mapping says about its file, for finding the object again without opening the file.
#[derive(PartialEq, Eq, Hash)]
struct MappingKey {
    file: Option<MappedFile>,
    path: Vec<u8>,
}

/// Part of the file descriptors that objects may take; rings, events and outputs need the rest.
const SHARE_OF_DESCRIPTORS: u64 = 2;

/// More objects than this are not held open, whatever the limit allows.
const MAX_OPEN: u64 = 16_384;

/// Up to this many objects none is dropped.
const FEW_OBJECTS: usize = 4096;

/// More files than this are not remembered, whatever objects they hold.
const MANY_FILES: usize = 32_768;

impl Default for Objects {
    fn default() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::with_max_open((descriptors / SHARE_OF_DESCRIPTORS).min(MAX_OPEN) as usize)
    }
}

impl Objects {
    /// No object yet, and never more than this many files open.
    #[must_use]
    pub fn with_max_open(max_open: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            next: 0,
            by_identity: HashMap::new(),
            by_mapping: HashMap::new(),
            by_file: HashMap::new(),
            jit_code: JitCode::default(),
            roots: Roots::default(),
            seen: 0,
            seen_before: 0,
            enough: FEW_OBJECTS,
            open: 0,
            max_open: max_open.max(1),
        }
    }

    /// The object with this number.
    #[must_use]
    pub fn get(&self, id: ObjectId) -> &Object {
        &self.objects[&id]
    }

    /// The key by which the kernel side knows the file of an object; `None` for one that was never open.
    #[must_use]
    pub fn file_key(&self, id: ObjectId) -> Option<FileKey> {
        let object = self.get(id);
        match object.backing {
            BackingFile::Open(_) | BackingFile::Closed => Some(object.stamp?.key()),
            BackingFile::Vdso => Some(FileKey::VDSO),
            BackingFile::Vsyscall | BackingFile::Unreadable(_) => None,
        }
    }

    /// The object of a file that was opened; `None` when no file with this key was.
    #[must_use]
    pub fn with_key(&self, file: FileKey) -> Option<ObjectId> {
        self.by_file.get(&file).copied()
    }

    /// All objects with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.objects.iter().map(|(&id, object)| (id, object))
    }

    /// The file of an object, with the content that was mapped.
    ///
    /// # Errors
    ///
    /// When there is none, or it holds something else by now.
    pub fn file(&self, id: ObjectId) -> Result<Arc<File>, Unreadable> {
        let object = self.get(id);
        match &object.backing {
            BackingFile::Open(file) if object.is_held_by(file) => Ok(Arc::clone(file)),
            BackingFile::Open(_) => Err(Unreadable::Overwritten),
            BackingFile::Closed => {
                let same = object.find_companion(&object.path, |file| object.is_held_by(file));
                same.map(Arc::new).ok_or(Unreadable::Evicted)
            }
            BackingFile::Vdso | BackingFile::Vsyscall => Err(Unreadable::NoFile),
            BackingFile::Unreadable(why) => Err(*why),
        }
    }

    /// Keeps what forked processes have of their parents: to be called as soon as the fork is known.
    pub fn note_fork(&mut self, parent: Tgid, child: Tgid) {
        self.jit_code.note_fork(parent, child);
    }

    /// The code that processes make at run time.
    #[must_use]
    pub fn jit_code(&self) -> &JitCode {
        &self.jit_code
    }

    /// The same, to look names up while samples are drained.
    pub fn jit_code_mut(&mut self) -> &mut JitCode {
        &mut self.jit_code
    }

    /// Drops the objects that nothing refers to and that were not seen since the call before, once there are many more than were left then.
    ///
    /// # Panics
    ///
    /// Later, if something that `referred` leaves out is asked for.
    pub fn forget(&mut self, referred: impl FnOnce() -> HashSet<ObjectId>) {
        let seen_before = mem::replace(&mut self.seen_before, self.seen);
        let entries =
            |objects: &Self| objects.objects.len().max(objects.by_mapping.len()).max(objects.by_file.len());
        if entries(self) <= self.enough {
            return;
        }
        let referred = referred();
        self.objects.retain(|id, object| object.last_seen > seen_before || referred.contains(id));
        self.by_identity.retain(|_, id| self.objects.contains_key(id));
        self.by_mapping.retain(|_, id| id.is_some_and(|id| self.objects.contains_key(&id)));
        self.by_file.retain(|_, id| self.objects.contains_key(id));
        // One object may be seen at any number of paths, and in any number of copies. What is asked for again is looked up again.
        if self.by_mapping.len() > MANY_FILES {
            self.by_mapping.clear();
        }
        if self.by_file.len() > MANY_FILES {
            self.by_file.clear();
        }
        self.open = self.objects.values().filter(|object| object.is_open()).count();
        self.enough = FEW_OBJECTS.max(entries(self) * 2);
    }

    /// The object that a process has mapped; opened now when it is new. `None` for memory without an object.
    pub fn find(&mut self, tgid: Tgid, mapped: &Mapped) -> Option<ObjectId> {
        let path = mapped.path.strip_suffix(b" (deleted)").unwrap_or(&mapped.path);
        let found = if is_anonymous(path) { None } else { self.find_file(tgid, mapped, path) };
        match found {
            None => self.jit_code.notice(tgid),
            Some(id) if jit::is_dump(path) => {
                if let BackingFile::Open(file) = &self.objects[&id].backing {
                    self.jit_code.note_dump(tgid, file);
                }
            }
            Some(_) => {}
        }
        found
    }

    fn find_file(&mut self, tgid: Tgid, mapped: &Mapped, path: &[u8]) -> Option<ObjectId> {
        self.seen += 1;
        let key = MappingKey { file: mapped.file, path: path.to_vec() };
        match self.by_mapping.get(&key) {
            Some(None) => return None,
            Some(&Some(id)) if self.get(id).is_settled(mapped.file) => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.last_seen = self.seen;
                }
                return Some(id);
            }
            _ => {}
        }
        let id = open_object(tgid, mapped, path).map(|(identity, object)| {
            let root = self.roots.of(tgid);
            let file = object.stamp.map(FileStamp::key);
            let object = Object { root, ..object };
            let id = self.admit(self.variant(identity, &object), object);
            if let Some(file) = file {
                self.by_file.insert(file, id);
            }
            id
        });
        self.by_mapping.insert(key, id);
        id
    }

    /// The identity told apart from that of other files with the same build id.
    fn variant(&self, identity: Identity, new: &Object) -> Identity {
        let Identity::Build { id, .. } = identity else { return identity };
        let differs = |variant: &u8| {
            let known = self.by_identity.get(&Identity::Build { id, variant: *variant });
            known.and_then(|known| self.objects.get(known)).is_some_and(|known| known.is_another_than(new))
        };
        let free = (0..Identity::MOST_VARIANTS).find(|variant| !differs(variant));
        Identity::Build { id, variant: free.unwrap_or(Identity::MOST_VARIANTS) }
    }

    /// Takes an object as new, or as one that is known and whose file may have been missing until now.
    fn admit(&mut self, identity: Identity, mut new: Object) -> ObjectId {
        new.last_seen = self.seen;
        let opened = new.is_open();
        let known = self.by_identity.get(&identity).copied();
        let id = match known.and_then(|id| Some((id, self.objects.get_mut(&id)?))) {
            Some((id, known)) => {
                known.last_seen = self.seen;
                let keeps = matches!(&known.backing, BackingFile::Open(file) if known.is_held_by(file));
                if keeps || !opened {
                    known.failures += u32::from(!opened);
                    return id;
                }
                self.open -= usize::from(known.is_open());
                *known = new;
                id
            }
            None => {
                let id = ObjectId(self.next);
                self.next = self.next.saturating_add(1);
                self.objects.insert(id, new);
                self.by_identity.insert(identity, id);
                id
            }
        };
        self.open += usize::from(opened);
        if self.open > self.max_open {
            self.close_least_recent();
        }
        id
    }

    fn close_least_recent(&mut self) {
        let open = self.objects.values_mut().filter(|object| object.is_open());
        if let Some(object) = open.min_by_key(|object| object.last_seen) {
            object.backing = BackingFile::Closed;
            self.open -= 1;
        }
    }
}

/// Opens an object; `None` when the file holds none.
fn open_object(tgid: Tgid, mapped: &Mapped, path: &[u8]) -> Option<(Identity, Object)> {
    let backing = match path {
        b"[vdso]" => BackingFile::Vdso,
        b"[vsyscall]" => BackingFile::Vsyscall,
        [b'/', ..] => open_mapped(tgid, mapped, path)
            .map_or_else(BackingFile::Unreadable, |file| BackingFile::Open(file.into())),
        _ => BackingFile::Unreadable(Unreadable::NoFile),
    };
    let mapped_id = match mapped.file {
        Some(MappedFile::BuildId(id)) => Some(id),
        _ => None,
    };
    let (file_id, stamp) = match &backing {
        BackingFile::Open(file) if is_in_memory(path) && !is_elf(file) => return None,
        BackingFile::Open(file) => (build_id(file), FileStamp::of(file)),
        _ => (None, None),
    };
    let build_id = mapped_id.or(file_id);
    let identity = match (build_id, stamp, mapped.file) {
        (Some(id), ..) => Identity::Build { id, variant: 0 },
        (None, Some(stamp), _) => Identity::File(stamp),
        (None, None, Some(MappedFile::Inode { device, inode })) => Identity::Inode { device, inode },
        _ => Identity::Name(path.to_vec()),
    };
    let object = Object {
        name: String::from_utf8_lossy(short_name(path)).into(),
        path: PathBuf::from(OsStr::from_bytes(path)),
        build_id,
        backing,
        stamp,
        root: Root::ours(),
        last_seen: 0,
        failures: 0,
    };
    Some((identity, object))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::processes::scan;

    fn this() -> Tgid {
        Tgid(std::process::id())
    }

    fn mapping_of(name: &str) -> Mapped {
        let ours = scan::mappings(this());
        ours.into_iter().find(|mapped| mapped.path.ends_with(name.as_bytes())).unwrap()
    }

    #[test]
    fn the_same_file_is_one_object_however_it_is_named() {
        let mut objects = Objects::default();
        let mapped = mapping_of("libc.so.6");
        let first = objects.find(this(), &mapped).unwrap();
        let id = objects.get(first).build_id.unwrap();
        let by_id = Mapped { file: Some(MappedFile::BuildId(id)), ..mapped.clone() };
        assert_eq!(objects.find(this(), &by_id), Some(first));
        assert_eq!(&*objects.get(first).name, "libc.so.6");
        assert!(matches!(objects.get(first).backing, BackingFile::Open(_)));
    }

    #[test]
    fn another_file_at_the_path_is_not_taken() {
        let wrong = MappedFile::Inode { device: 1, inode: 1 };
        let mapped =
            Mapped { start: crate::types::UserAddress(0), file: Some(wrong), ..mapping_of("libc.so.6") };
        let mut objects = Objects::default();
        let id = objects.find(this(), &mapped).unwrap();
        assert!(matches!(objects.get(id).backing, BackingFile::Unreadable(Unreadable::Gone)));
    }

    #[test]
    fn code_without_a_file_is_no_object() {
        let mut objects = Objects::default();
        for path in ["", "//anon", "[heap]", "[anon:jit]", "/anon_hugepage (deleted)", "/dev/zero (deleted)"]
        {
            let mapped = Mapped { path: path.as_bytes().to_vec(), file: None, ..mapping_of("libc.so.6") };
            assert_eq!(objects.find(this(), &mapped), None, "{path}");
        }
        let vdso = objects.find(this(), &mapping_of("[vdso]")).unwrap();
        assert!(matches!(objects.get(vdso).backing, BackingFile::Vdso));
    }

    /// A copy of the dynamic loader's library at a path, as a mapping of its inode that no process has.
    fn copied(to: &Path) -> Mapped {
        std::fs::copy("/proc/self/exe", to).unwrap();
        mapping_at(to)
    }

    fn mapping_at(path: &Path) -> Mapped {
        let stamp = FileStamp::of(&File::open(path).unwrap()).unwrap();
        Mapped {
            start: crate::types::UserAddress(0),
            len: 0x1000,
            file_offset: crate::types::FileOffset(0),
            path: path.as_os_str().as_bytes().to_vec(),
            file: Some(MappedFile::Inode { device: stamp.device, inode: stamp.inode }),
        }
    }

    fn plain(folder: &Path, name: &str, content: &str) -> Mapped {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        mapping_at(&path)
    }

    #[test]
    fn a_file_written_anew_in_place_is_another_object() {
        let folder = tempfile::tempdir().unwrap();
        let mut objects = Objects::default();
        let mapped = plain(folder.path(), "program", "first");
        let first = objects.find(this(), &mapped).unwrap();
        assert!(objects.file(first).is_ok());
        let again = plain(folder.path(), "program", "the second");
        assert_eq!(again, mapped, "the same inode");
        let second = objects.find(this(), &again).unwrap();
        assert_ne!(first, second);
        assert_eq!(objects.file(first).unwrap_err(), Unreadable::Overwritten);
        assert!(objects.file(second).is_ok());
    }

    #[test]
    fn a_deleted_file_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let mut objects = Objects::default();
        let path = folder.path().join("program");
        let mapped = copied(&path);
        let id = objects.find(this(), &mapped).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another").unwrap();
        assert!(build_id(&objects.file(id).unwrap()).is_some());
    }

    #[test]
    fn too_many_open_files_are_closed_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut objects = Objects::with_max_open(2);
        let names = ["a", "b", "c"];
        let ids: Vec<ObjectId> = names
            .iter()
            .map(|name| objects.find(this(), &plain(folder.path(), name, name)).unwrap())
            .collect();
        assert_eq!(objects.iter().filter(|(_, object)| object.is_open()).count(), 2);
        assert!(matches!(objects.get(ids[0]).backing, BackingFile::Closed));
        assert!(objects.file(ids[0]).is_ok());
        // Seen again, it is opened again, under its own number.
        assert_eq!(objects.find(this(), &mapping_at(&folder.path().join("a"))), Some(ids[0]));
        assert!(objects.get(ids[0]).is_open());
        assert!(matches!(objects.get(ids[1]).backing, BackingFile::Closed));
        std::fs::write(folder.path().join("b"), "changed").unwrap();
        assert_eq!(objects.file(ids[1]).unwrap_err(), Unreadable::Evicted);
    }

    #[test]
    fn what_nothing_refers_to_is_dropped_and_the_rest_keeps_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let mut objects = Objects::with_max_open(2);
        let libc = mapping_of("libc.so.6");
        let find = |objects: &mut Objects, name: &str| {
            objects.find(this(), &plain(folder.path(), name, name)).unwrap()
        };
        let kept = find(&mut objects, "kept");
        objects.forget(|| panic!("there are few"));
        for round in 0..4 {
            for number in 0..FEW_OBJECTS {
                let path = format!("/nowhere/{round}/{number}");
                let file = Some(MappedFile::Inode { device: round, inode: number as u64 });
                objects.find(this(), &Mapped { path: path.into(), file, ..libc.clone() });
            }
            // Those just seen are about to be referred to.
            objects.forget(|| HashSet::from([kept]));
            assert!(objects.iter().count() > FEW_OBJECTS);
        }
        assert!(objects.iter().count() <= 2 * FEW_OBJECTS + 1, "{}", objects.iter().count());
        assert_eq!(&*objects.get(kept).name, "kept");
        let next = find(&mut objects, "next");
        assert_eq!(next.number() as usize, 4 * FEW_OBJECTS + 1);
        assert!(objects.by_mapping.len() == objects.objects.len() && objects.open == 2);
    }

    #[test]
    fn an_object_that_could_not_be_opened_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let mapped = copied(&path);
        let away = folder.path().join("elsewhere");
        std::fs::rename(&path, &away).unwrap();
        let mut objects = Objects::default();
        let id = objects.find(this(), &mapped).unwrap();
        assert_eq!(objects.file(id).unwrap_err(), Unreadable::Gone);
        std::fs::rename(&away, &path).unwrap();
        let id = objects.find(this(), &mapped).unwrap();
        assert!(objects.file(id).is_ok());
    }

    #[test]
    fn without_an_identity_a_path_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let mapped = Mapped { file: None, ..plain(folder.path(), "program", "a stranger") };
        let mut objects = Objects::default();
        let id = objects.find(this(), &mapped).unwrap();
        assert_eq!(objects.file(id).unwrap_err(), Unreadable::Gone);
    }

    #[test]
    fn files_in_memory_keep_their_name_and_hold_objects_only_if_they_are_elf() {
        let (file, path) = in_memory(b"\x7fELF");
        let mut objects = Objects::default();
        let id = objects.find(this(), &Mapped { path, ..mapping_of_file(&file) }).unwrap();
        assert_eq!(&*objects.get(id).name, "memfd:x/y");
        assert!(!is_elf(&in_memory(b"\x90\x90\x90\x90").0));
    }

    fn in_memory(content: &[u8]) -> (File, Vec<u8>) {
        use std::io::Write as _;
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("x/y", flags).unwrap());
        file.write_all(content).unwrap();
        (file, b"/memfd:x/y (deleted)".to_vec())
    }

    fn mapping_of_file(file: &File) -> Mapped {
        use std::os::fd::AsRawFd as _;
        mapping_at(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    }
}
