//! Finding the files that hold what was split off an object: its symbols and debug information, and what `dwz` took out of those.
//!
//! Each candidate proves that it belongs to the object.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::iter;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::elf::ElfFile;
use crate::kernel::BuildId;
use crate::processes::{Object, build_id};

/// Where distributions install debug files.
const SYSTEM_DEBUG_DIR: &str = "/usr/lib/debug";

/// The separate debug file of a stripped object, from these folders and the system's, or from beside the object.
pub(super) fn find(object: &Object, elf: &ElfFile, folders: &[PathBuf]) -> Option<File> {
    let folders = all_folders(folders);
    let by_build_id = object.build_id.into_iter().flat_map(|id| build_id_paths(&id, &folders));
    let by_link = elf.debug_link.iter().flat_map(|(name, _)| link_paths(&object.path, name, &folders));
    let crc = elf.debug_link.as_ref().map(|&(_, crc)| crc);
    let belongs = |file: &File| {
        belongs(file, object.build_id, crc) && ElfFile::read(file).is_ok_and(|debug| elf.has_code_of(&debug))
    };
    by_build_id.chain(by_link).find_map(|path| object.find_companion(&path, belongs))
}

/// The file that `dwz` moved a part of the DWARF at `path` to, by the path and the build id in that.
pub(super) fn find_supplementary(
    object: &Object,
    path: &Path,
    link: &[u8],
    id: BuildId,
    folders: &[PathBuf],
) -> Option<File> {
    let linked = path.parent()?.join(OsStr::from_bytes(link));
    let paths = iter::once(linked).chain(build_id_paths(&id, &all_folders(folders)));
    paths.into_iter().find_map(|path| object.find_companion(&path, |file| build_id(file) == Some(id)))
}

/// The user's folders as absolute paths, then the system's.
fn all_folders(folders: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = folders.iter().filter_map(|folder| std::path::absolute(folder).ok());
    absolute.chain([SYSTEM_DEBUG_DIR.into()]).collect()
}

fn build_id_paths(id: &BuildId, folders: &[PathBuf]) -> Vec<PathBuf> {
    let path = build_id_path(id);
    folders.iter().map(|folder| folder.join(&path)).collect()
}

/// Path of a debug file below a debug folder: `.build-id/ab/cdef….debug`.
fn build_id_path(id: &BuildId) -> PathBuf {
    let digits = id.to_string();
    let (first, rest) = digits.split_at(2);
    PathBuf::from(format!(".build-id/{first}/{rest}.debug"))
}

/// The places gdb looks in: beside the object, in `.debug` there, and below each debug folder at the object's own path.
fn link_paths(object: &Path, name: &[u8], folders: &[PathBuf]) -> Vec<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    // A name, not a path: it must not lead out of the folders.
    let plain = matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    let (true, Some(home)) = (plain, object.parent()) else { return Vec::new() };
    let below = home.strip_prefix("/").unwrap_or(home);
    let mut paths = vec![home.join(name), home.join(".debug").join(name)];
    paths.extend(folders.iter().flat_map(|folder| [folder.join(below).join(name), folder.join(name)]));
    paths
}

/// Whether a debug file was split off the object: by build id where the object has one, else by the checksum in its link.
fn belongs(debug: &File, id: Option<BuildId>, crc: Option<u32>) -> bool {
    match (id, crc) {
        (Some(id), _) => build_id(debug) == Some(id),
        (None, Some(crc)) => crc32(debug) == Some(crc),
        (None, None) => false,
    }
}

fn crc32(mut file: &File) -> Option<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finalize()),
            len => hasher.update(buffer.get(..len)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_places_that_gdb_knows() {
        let folder = PathBuf::from("/usr/lib/debug");
        let paths = link_paths(Path::new("/opt/a/app"), b"app.debug", std::slice::from_ref(&folder));
        let expected = [
            "/opt/a/app.debug",
            "/opt/a/.debug/app.debug",
            "/usr/lib/debug/opt/a/app.debug",
            "/usr/lib/debug/app.debug",
        ];
        assert_eq!(paths, expected.map(PathBuf::from));
        assert!(
            link_paths(Path::new("/opt/a/app"), b"../../etc/shadow", std::slice::from_ref(&folder))
                .is_empty()
        );
        assert!(
            link_paths(Path::new("/opt/a/app"), b"/etc/shadow", std::slice::from_ref(&folder)).is_empty()
        );
    }

    #[test]
    fn build_ids_are_spelled_as_folders() {
        let id = BuildId::new(&[0xab, 0xcd, 0x01]).unwrap();
        assert_eq!(build_id_path(&id), PathBuf::from(".build-id/ab/cd01.debug"));
    }

    #[test]
    fn a_debug_file_of_another_build_does_not_belong() {
        let exe = File::open("/proc/self/exe").unwrap();
        assert!(!belongs(&exe, BuildId::new(&[1; 20]), None));
        assert!(belongs(&exe, build_id(&exe), None));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "123456789").unwrap();
        let file = || File::open(&path).unwrap();
        // The check value of this CRC in every catalogue of CRCs.
        assert!(belongs(&file(), None, Some(0xcbf4_3926)));
        assert!(!belongs(&file(), None, Some(1)));
    }
}
