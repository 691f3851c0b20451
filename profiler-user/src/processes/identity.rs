//! What makes two files the same one.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use object::Object as _;
use profiler_common::mapping::FileKey;

use crate::bounded_file::BoundedFile;
use crate::kernel::BuildId;

/// What makes two mapped files the same object.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Copies of one file, told apart from others with its build id by their content.
    Build {
        id: BuildId,
        variant: u8,
    },
    File(FileStamp),
    Inode {
        device: u64,
        inode: u64,
    },
    Name(Vec<u8>),
}

impl Identity {
    /// Files of one build id that are told apart; what comes after them is taken for one file.
    pub(super) const MOST_VARIANTS: u8 = 64;
}

/// What tells, without reading a file, whether it is still the one that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Device number as `stat` gives it.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    pub(super) size: u64,
    /// Seconds and nanoseconds since the epoch.
    modified: (i64, i64),
}

impl FileStamp {
    /// The stamp of an open file; `None` when it cannot be asked.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    /// The key by which the kernel side knows the file.
    #[must_use]
    pub fn key(self) -> FileKey {
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        // The kernel's own encoding of a device number (`MKDEV` of include/linux/kdev_t.h).
        let device = u64::from(major) << 20 | u64::from(minor);
        FileKey::new(device, self.inode, self.size, (self.modified.0.cast_unsigned(), self.modified.1 as u32))
    }
}

/// The build id in a file's notes. Read, not mapped: a file that is truncated meanwhile must not kill us.
#[must_use]
pub fn build_id(file: &File) -> Option<BuildId> {
    let cache = BoundedFile::new(file);
    let elf = object::File::parse(&cache).ok()?;
    BuildId::new(elf.build_id().ok()??)
}

/// Whether a file begins as an ELF file does.
pub(super) fn is_elf(file: &File) -> bool {
    let mut magic = [0; 4];
    let mut reader = file;
    std::io::Seek::rewind(&mut reader).is_ok()
        && reader.read_exact(&mut magic).is_ok()
        && magic == *b"\x7fELF"
}
