//! From file offsets to the addresses that symbols are stated in.

use std::fs::File;

use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _, SegmentFlags, elf::PF_X};

use crate::types::{ElfAddress, FileOffset};

/// The loadable segments of an ELF file.
pub(super) struct Segments(Vec<Segment>);

struct Segment {
    file_start: u64,
    file_len: u64,
    address: u64,
    executable: bool,
}

impl Segments {
    /// Reads the program headers. Section headers do not matter.
    pub(super) fn read(file: &File) -> object::Result<Self> {
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache)?;
        let segments = elf.segments().map(|segment| {
            let (file_start, file_len) = segment.file_range();
            let executable = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
            Segment { file_start, file_len, address: segment.address(), executable }
        });
        Ok(Self(segments.collect()))
    }

    /// The address of this byte of the file when it is loaded.
    ///
    /// A page at the border of two segments is in both; code is in the executable one.
    pub(super) fn address(&self, offset: FileOffset) -> Option<ElfAddress> {
        let holding = |segment: &&Segment| {
            offset.0.checked_sub(segment.file_start).is_some_and(|at| at < segment.file_len)
        };
        let executable = self.0.iter().filter(|segment| segment.executable).find(holding);
        let segment = executable.or_else(|| self.0.iter().find(holding))?;
        Some(ElfAddress(offset.0 - segment.file_start + segment.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_page_belongs_to_the_executable_segment() {
        let segment =
            |file_start, file_len, address, executable| Segment { file_start, file_len, address, executable };
        let segments = Segments(vec![segment(0, 0x1100, 0, false), segment(0x1000, 0x800, 0x2000, true)]);
        assert_eq!(segments.address(FileOffset(0x1010)), Some(ElfAddress(0x2010)));
        assert_eq!(segments.address(FileOffset(0x10)), Some(ElfAddress(0x10)));
        assert_eq!(segments.address(FileOffset(0x1800)), None);
    }
}
