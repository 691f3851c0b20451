//! Whether two files hold the same program. A build id alone does not tell: llvm-bolt, patchelf and `objcopy --update-section` keep that
//! of the original.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use object::{Object as _, ObjectSection as _};

use crate::bounded_file::BoundedFile;

/// Sections that decide what addresses mean: call-frame information and symbols.
const DECISIVE: [&[u8]; 7] =
    [b".eh_frame_hdr", b".eh_frame", b".debug_frame", b".symtab", b".strtab", b".dynsym", b".dynstr"];

/// Bytes at both ends of a file that are compared, where the headers are.
const ENDS: u64 = 4096;

/// Bytes of one section that are compared at most.
const MOST: u64 = 64 << 20;

/// Whether two files of one build id and one size are copies of one another: the same headers, call-frame information and symbols.
pub(super) fn is_copy(one: &File, other: &File) -> bool {
    let size = |file: &File| file.metadata().map(|metadata| metadata.len()).ok();
    let (Some(len), true) = (size(one), size(one) == size(other)) else { return false };
    let ends = [(0, ENDS.min(len)), (len.saturating_sub(ENDS), ENDS.min(len))];
    let sections = decisive_sections(one);
    sections == decisive_sections(other)
        && ends.into_iter().chain(sections).all(|(start, len)| is_equal(one, other, start, len.min(MOST)))
}

/// Places in the file.
fn decisive_sections(file: &File) -> Vec<(u64, u64)> {
    let cache = BoundedFile::new(file);
    let Ok(elf) = object::File::parse(&cache) else { return Vec::new() };
    let decisive =
        elf.sections().filter(|section| section.name_bytes().is_ok_and(|name| DECISIVE.contains(&name)));
    decisive.filter_map(|section| section.file_range()).collect()
}

fn is_equal(one: &File, other: &File, start: u64, len: u64) -> bool {
    const CHUNK: u64 = 1 << 16;
    let (mut a, mut b) = ([0; CHUNK as usize], [0; CHUNK as usize]);
    (start..start.saturating_add(len)).step_by(CHUNK as usize).all(|at| {
        let len = CHUNK.min(start.saturating_add(len) - at) as usize;
        let (a, b) = (&mut a[..len], &mut b[..len]);
        one.read_exact_at(a, at).is_ok() && other.read_exact_at(b, at).is_ok() && a == b
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A copy of a program with a byte at each of these places turned.
    fn copy(places: &[u64]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&fs::read("/bin/true").unwrap(), 0).unwrap();
        for &place in places {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).unwrap();
            file.write_all_at(&[!byte[0]], place).unwrap();
        }
        file
    }

    #[test]
    fn headers_frames_and_symbols_decide() {
        let original = File::open("/bin/true").unwrap();
        assert!(is_copy(&original, &copy(&[])));
        let len = original.metadata().unwrap().len();
        for (start, len) in decisive_sections(&original).into_iter().chain([(40, 8), (len - 8, 8)]) {
            assert!(!is_copy(&original, &copy(&[start + len - 1])), "{start:#x}");
        }
        let longer = copy(&[]);
        longer.write_all_at(b"x", len).unwrap();
        assert!(!is_copy(&original, &longer));
        assert!(!decisive_sections(&original).is_empty());
    }
}
