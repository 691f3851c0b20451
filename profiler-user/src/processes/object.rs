//! One object: a file with code, and whether another file is the same.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::is_copy;
use super::identity::{FileStamp, build_id};
use super::root::Root;
use super::unreadable::Unreadable;
use crate::kernel::{BuildId, MappedFile};

/// Opens of one object that may fail before it is given up.
const MAX_FAILURES: u32 = 32;

/// A file with code, or code that the kernel provides.
#[derive(Clone, Debug)]
pub struct Object {
    /// Last part of its path, or the kernel's name for it.
    pub name: Arc<str>,
    /// Path in the mount namespace of the first process seen with it.
    pub path: PathBuf,
    /// Build id of the opened file, or of the mapping.
    pub build_id: Option<BuildId>,
    /// Where its bytes are. [`Objects::file`] gives them only while they are those that were mapped.
    pub backing: BackingFile,
    /// The file as it was when it was opened; `None` when it never was.
    pub(super) stamp: Option<FileStamp>,
    /// Root of the first process seen with it.
    pub(super) root: Root,
    /// When it was last seen in a process, in mappings seen before.
    pub(super) last_seen: u64,
    /// Opens that failed.
    pub(super) failures: u32,
}

/// Where the bytes of an object are.
#[derive(Clone, Debug)]
pub enum BackingFile {
    /// An open file: readable even when it is deleted, replaced, or in another mount namespace.
    Open(Arc<File>),
    /// A file that was open, closed because too many were.
    Closed,
    /// The kernel's virtual object, the same in all 64-bit processes.
    Vdso,
    /// The page of old system calls of x86_64, the same in all processes. It cannot be read.
    Vsyscall,
    /// Nowhere.
    Unreadable(Unreadable),
}

impl Object {
    /// Bytes of its file; 0 where it has none or could not be opened.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.stamp.map_or(0, |stamp| stamp.size)
    }

    /// An object that was never opened.
    #[cfg(test)]
    pub(crate) fn named(path: &str, build_id: Option<BuildId>) -> Self {
        Self {
            name: String::from_utf8_lossy(super::paths::short_name(path.as_bytes())).into(),
            path: path.into(),
            build_id,
            backing: BackingFile::Unreadable(Unreadable::Gone),
            stamp: None,
            root: Root::ours(),
            last_seen: 0,
            failures: 0,
        }
    }

    /// The file at a path that the object, or who built it, names: below the root of its process, or else below ours.
    /// A path proves nothing, so the file must.
    #[must_use]
    pub fn find_companion(&self, path: &Path, belongs: impl Fn(&File) -> bool) -> Option<File> {
        let roots = [&self.root, &Root::ours()];
        roots.into_iter().filter_map(|root| root.open(path).ok()).find(belongs)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.backing, BackingFile::Open(_))
    }

    /// Whether this file has the content that was mapped. A build id and the size prove it even when the file was copied or touched.
    pub(super) fn is_held_by(&self, file: &File) -> bool {
        let stamp = FileStamp::of(file);
        let size = |stamp: Option<FileStamp>| stamp.map(|stamp| stamp.size);
        stamp == self.stamp
            || (self.build_id.is_some() && size(stamp) == size(self.stamp) && build_id(file) == self.build_id)
    }

    /// Whether an object with the same build id surely holds another program.
    pub(super) fn is_another_than(&self, other: &Self) -> bool {
        match (&self.backing, &other.backing) {
            _ if self.stamp == other.stamp => false,
            (BackingFile::Open(one), BackingFile::Open(other)) => !is_copy(one, other),
            _ => self.stamp.zip(other.stamp).is_some_and(|(one, other)| one.size != other.size),
        }
    }

    /// Whether another mapping of this file needs no second look at it.
    pub(super) fn is_settled(&self, mapped: Option<MappedFile>) -> bool {
        match &self.backing {
            // An inode stays the same when a file is written anew.
            BackingFile::Open(file) if !matches!(mapped, Some(MappedFile::BuildId(_))) => {
                FileStamp::of(file) == self.stamp
            }
            BackingFile::Open(_)
            | BackingFile::Vdso
            | BackingFile::Vsyscall
            | BackingFile::Unreadable(Unreadable::NoFile) => true,
            BackingFile::Closed => matches!(mapped, Some(MappedFile::BuildId(_))),
            // Another process may show it.
            BackingFile::Unreadable(_) => self.failures > MAX_FAILURES,
        }
    }
}
