//! Objects: the files that processes execute, opened at first sight and kept.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::Object as _;
use object::read::ReadCache;
use profiler_common::mapping::FileKey;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::kernel::{BuildId, Mapped, MappedFile};
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
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// A file with code, or code that the kernel provides.
#[derive(Clone, Debug)]
pub struct Object {
    /// Last part of its path, or the kernel's name for it.
    pub name: Arc<str>,
    /// Path in the mount namespace of the first process seen with it.
    pub path: PathBuf,
    /// Build id of the opened file, or of the mapping.
    pub build_id: Option<BuildId>,
    /// Where its bytes are.
    pub backing: BackingFile,
}

/// Where the bytes of an object are.
#[derive(Clone, Debug)]
pub enum BackingFile {
    /// An open file: readable even when it is deleted, replaced, or in another mount namespace.
    Open(Arc<File>),
    /// The kernel's virtual object, the same in all 64-bit processes.
    Vdso,
    /// Nowhere.
    Unreadable(Unreadable),
}

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// The process had ended, and no file at its path is the one that was mapped.
    Gone,
    /// bpfprof may not open it.
    NotPermitted,
    /// There is no file behind it.
    NoFile,
}

/// All objects seen, each once however many processes map it.
#[derive(Default)]
pub struct Objects {
    objects: Vec<Object>,
    by_identity: HashMap<Identity, ObjectId>,
    by_mapping: HashMap<MappingKey, ObjectId>,
}

/// What makes two mapped files the same object.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    BuildId(BuildId),
    File { device: u64, inode: u64, size: u64, modified: (i64, i64) },
    Name(Vec<u8>),
}

/// What a mapping says about its file, for finding the object again without opening the file.
#[derive(PartialEq, Eq, Hash)]
struct MappingKey {
    file: Option<MappedFile>,
    path: Vec<u8>,
}

impl Objects {
    /// The object with this number.
    #[must_use]
    pub fn get(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    /// The key by which the kernel side knows the file of an object; `None` for one that is not open.
    #[must_use]
    pub fn file_key(&self, id: ObjectId) -> Option<FileKey> {
        match &self.get(id).backing {
            BackingFile::Open(file) => {
                let metadata = file.metadata().ok()?;
                let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
                // The kernel's own encoding of a device number (`MKDEV` of include/linux/kdev_t.h).
                let device = u64::from(major) << 20 | u64::from(minor);
                let modified = metadata.mtime().cast_unsigned();
                Some(FileKey::new(device, metadata.ino(), metadata.size(), modified))
            }
            BackingFile::Vdso => Some(FileKey::VDSO),
            BackingFile::Unreadable(_) => None,
        }
    }

    /// All objects with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        (0..).map(ObjectId).zip(&self.objects)
    }

    /// The object that a process has mapped; opened now when it is new. `None` for memory without a file.
    pub fn find(&mut self, tgid: Tgid, mapped: &Mapped) -> Option<ObjectId> {
        let path = mapped.path.strip_suffix(b" (deleted)").unwrap_or(&mapped.path);
        if is_anonymous(path) {
            return None;
        }
        let key = MappingKey { file: mapped.file, path: path.to_vec() };
        if let Some(&id) = self.by_mapping.get(&key) {
            return Some(id);
        }
        let (identity, object) = open_object(tgid, mapped, path);
        let id = *self.by_identity.entry(identity).or_insert_with(|| {
            self.objects.push(object);
            ObjectId(u32::try_from(self.objects.len() - 1).unwrap_or(u32::MAX))
        });
        self.by_mapping.insert(key, id);
        Some(id)
    }
}

/// Whether the kernel's name of a mapping stands for memory without a file: heaps, stacks, code made at run time.
fn is_anonymous(path: &[u8]) -> bool {
    let anonymous = [&b"//anon"[..], b"[heap]", b"[stack]", b"[anon", b"/dev/zero", b"/anon_hugepage"];
    path.is_empty() || anonymous.iter().any(|name| path.starts_with(name))
}

fn open_object(tgid: Tgid, mapped: &Mapped, path: &[u8]) -> (Identity, Object) {
    let is_file = path.starts_with(b"/");
    let backing = match (path, is_file) {
        (b"[vdso]", _) => BackingFile::Vdso,
        (_, false) => BackingFile::Unreadable(Unreadable::NoFile),
        (_, true) => open_file(tgid, mapped, path)
            .map_or_else(BackingFile::Unreadable, |file| BackingFile::Open(file.into())),
    };
    let mapped_id = match mapped.file {
        Some(MappedFile::BuildId(id)) => Some(id),
        _ => None,
    };
    let (file_id, metadata) = match &backing {
        BackingFile::Open(file) => (build_id(file), file.metadata().ok()),
        _ => (None, None),
    };
    let build_id = mapped_id.or(file_id);
    let identity = match (build_id, metadata, mapped.file) {
        (Some(id), ..) => Identity::BuildId(id),
        (None, Some(metadata), _) => Identity::File {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        },
        (None, None, Some(MappedFile::Inode { device, inode })) => {
            Identity::File { device, inode, size: 0, modified: (0, 0) }
        }
        _ => Identity::Name(path.to_vec()),
    };
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let object = Object {
        name: String::from_utf8_lossy(name).into(),
        path: PathBuf::from(OsStr::from_bytes(path)),
        build_id,
        backing,
    };
    (identity, object)
}

/// Opens the mapped file by the three ways there are to it, and takes none for it that is another.
fn open_file(tgid: Tgid, mapped: &Mapped, path: &[u8]) -> Result<File, Unreadable> {
    let (start, end) = (mapped.start.0, mapped.start.0.saturating_add(mapped.len));
    let by_mapping = || File::open(format!("/proc/{tgid}/map_files/{start:x}-{end:x}"));
    let in_its_root = || open_below(Path::new(&format!("/proc/{tgid}/root")), path);
    let in_our_root = || open_below(Path::new("/"), path);
    let ways: [&dyn Fn() -> io::Result<File>; 3] = [&by_mapping, &in_its_root, &in_our_root];
    let mut why = Unreadable::Gone;
    for open in ways {
        match open() {
            Ok(file) if is_mapped_file(&file, mapped.file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => why = Unreadable::NotPermitted,
            _ => {}
        }
    }
    Err(why)
}

/// Opens a regular file below a root, as a process with that root would, without touching devices or pipes.
fn open_below(root: &Path, path: &[u8]) -> io::Result<File> {
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    if !File::from(found.try_clone()?).metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Whether an opened file is the mapped one, as far as the kernel said what was mapped.
fn is_mapped_file(file: &File, mapped: Option<MappedFile>) -> bool {
    match mapped {
        Some(MappedFile::BuildId(id)) => build_id(file) == Some(id),
        Some(MappedFile::Inode { device, inode }) => {
            file.metadata().is_ok_and(|found| found.ino() == inode && found.dev() == device)
        }
        None => true,
    }
}

/// The build id in a file's notes. Read, not mapped: a file that is truncated meanwhile must not kill us.
fn build_id(file: &File) -> Option<BuildId> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    BuildId::new(elf.build_id().ok()??)
}

#[cfg(test)]
mod tests {
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
        for path in ["", "//anon", "[heap]", "[anon:jit]"] {
            let mapped = Mapped { path: path.as_bytes().to_vec(), file: None, ..mapping_of("libc.so.6") };
            assert_eq!(objects.find(this(), &mapped), None, "{path}");
        }
        let vdso = objects.find(this(), &mapping_of("[vdso]")).unwrap();
        assert!(matches!(objects.get(vdso).backing, BackingFile::Vdso));
    }
}
