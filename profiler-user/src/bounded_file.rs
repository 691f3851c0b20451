//! Reading untrusted ELF files within a budget: a header of a few bytes can claim gigabytes of tables.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::ReadRef;
use typed_arena::Arena;

/// Bytes that may be read of one file. The tables of the largest programs take some ten megabytes.
const BUDGET: u64 = 128 << 20;

/// Bytes that a name is read by.
const STEP: u64 = 256;

/// A file whose parts are read when they are asked for, and kept. Read and not mapped: a file that is truncated meanwhile must not kill a
/// root process.
pub(crate) struct BoundedFile<'f> {
    file: &'f File,
    len: u64,
    left: Cell<u64>,
    kept: Arena<Box<[u8]>>,
}

impl<'f> BoundedFile<'f> {
    /// The file, nothing of it read.
    pub(crate) fn new(file: &'f File) -> Self {
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        Self { file, len, left: Cell::new(BUDGET), kept: Arena::new() }
    }
}

impl std::fmt::Debug for BoundedFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundedFile").field("len", &self.len).field("left", &self.left.get()).finish()
    }
}

impl<'a> ReadRef<'a> for &'a BoundedFile<'_> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(());
        }
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| ())?];
        self.file.read_exact_at(&mut bytes, offset).map_err(|_| ())?;
        Ok(self.kept.alloc(bytes.into()))
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(self.len);
        let mut size = STEP;
        loop {
            let part = self.read_bytes_at(range.start, size.min(end.checked_sub(range.start).ok_or(())?))?;
            match part.iter().position(|&byte| byte == delimiter) {
                Some(at) => return Ok(&part[..at]),
                None if range.start + part.len() as u64 >= end => return Err(()),
                None => size *= 4,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_file_are_read_up_to_the_budget() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"one\0two", 0).unwrap();
        file.set_len(4 * BUDGET).unwrap();
        let bounded = BoundedFile::new(&file);
        assert_eq!((&bounded).read_bytes_at(4, 3), Ok(&b"two"[..]));
        assert_eq!((&bounded).read_bytes_at_until(0..100, 0), Ok(&b"one"[..]));
        assert_eq!((&bounded).read_bytes_at_until(4..7, 0), Err(()));
        assert_eq!((&bounded).read_bytes_at(0, BUDGET), Err(()));
        assert_eq!((&bounded).read_bytes_at(u64::MAX, 1), Err(()));
        assert_eq!((&bounded).read_bytes_at(4 * BUDGET, 1), Err(()));
        let half = (&bounded).read_bytes_at(0, BUDGET / 2).unwrap();
        assert_eq!(half.len() as u64, BUDGET / 2);
        assert!((&bounded).read_bytes_at(0, BUDGET / 2).is_err(), "all of it together");
    }

    #[test]
    fn a_program_is_parsed() {
        use object::{Object as _, ObjectSymbol as _};
        let file = File::open("/proc/self/exe").unwrap();
        let bounded = BoundedFile::new(&file);
        let elf = object::File::parse(&bounded).unwrap();
        assert!(elf.sections().count() > 10);
        assert!(elf.symbols().take(100).any(|symbol| symbol.name().is_ok_and(|name| !name.is_empty())));
    }
}
