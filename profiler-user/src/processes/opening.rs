//! Opening the file behind a mapping, and none that is another.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::directory;
use super::identity::{FileStamp, build_id};
use super::root::{Root, open_regular};
use super::scan;
use super::unreadable::Unreadable;
use crate::kernel::{Mapped, MappedFile};
use crate::types::Tgid;

/// Opens the mapped file by the three ways there are to it: the mapping itself, its path in the root of the process, its path in ours.
///
/// A path proves nothing: it may lead to a rebuilt file, or in our mount namespace to a stranger. So without an identity from the
/// kernel only the mapping itself is taken.
pub(super) fn open_mapped(tgid: Tgid, mapped: &Mapped, path: &[u8]) -> Result<File, Unreadable> {
    let path = Path::new(OsStr::from_bytes(path));
    let by_mapping = || open_mapping(tgid, mapped);
    let in_its_root = || open_if(Root::of(tgid)?.open(path)?, |file| is_file(file, mapped.file));
    let in_our_root = || open_if(Root::ours().open(path)?, |file| is_file(file, mapped.file));
    let ways: [&dyn Fn() -> io::Result<File>; 3] = [&by_mapping, &in_its_root, &in_our_root];
    let mut why = Unreadable::Gone;
    for open in ways {
        match open() {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => why = Unreadable::NotPermitted,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Opens the file of a mapping through the mapping: right in every mount namespace, and for deleted files.
fn open_mapping(tgid: Tgid, mapped: &Mapped) -> io::Result<File> {
    let (start, end) = (mapped.start.0, mapped.start.0.saturating_add(mapped.len));
    let link = directory::of(tgid).join(format!("map_files/{start:x}-{end:x}"));
    let file = open_regular(rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?;
    // The process may have mapped another file there since.
    open_if(file, |file| is_file(file, mapped.file) || still_mapped(tgid, mapped))
}

fn open_if(file: File, wanted: impl Fn(&File) -> bool) -> io::Result<File> {
    if wanted(&file) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Whether an opened file is the mapped one by what the kernel said was mapped.
fn is_file(file: &File, mapped: Option<MappedFile>) -> bool {
    match mapped {
        Some(MappedFile::BuildId(id)) => build_id(file) == Some(id),
        Some(MappedFile::Inode { device, inode }) => {
            FileStamp::of(file).is_some_and(|stamp| (stamp.device, stamp.inode) == (device, inode))
        }
        None => false,
    }
}

/// Whether the process still has the very mapping of the record.
///
/// On btrfs and overlayfs `stat` gives another device than the mapping. `/proc/PID/maps` and the record take theirs from the same place.
fn still_mapped(tgid: Tgid, mapped: &Mapped) -> bool {
    !matches!(mapped.file, Some(MappedFile::BuildId(_)))
        && scan::mappings(tgid).into_iter().any(|now| {
            (now.start, now.len, now.file) == (mapped.start, mapped.len, mapped.file)
                && now.path == mapped.path
        })
}
