//! What an ELF file holds, read from its headers alone.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;

use object::elf::{PF_X, SHF_COMPRESSED, SHF_EXECINSTR};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, SectionFlags, SectionKind, SegmentFlags};

use super::linkage;
use crate::bounded_file::BoundedFile;
use crate::types::{ElfAddress, FileOffset};

/// Headers of an ELF file.
pub(super) struct ElfFile {
    segments: Vec<Segment>,
    /// Whether it has the table of all symbols, itself or compressed.
    pub(super) has_symbols: bool,
    /// Whether it names the functions it exports.
    pub(super) has_exports: bool,
    /// Whether it has a table of jumps to functions of other objects.
    pub(super) has_linkage_table: bool,
    /// Name, address and size of the sections that hold code.
    code: Vec<(Vec<u8>, u64, u64)>,
    /// Size of its DWARF unit entries in bytes, 0 without.
    pub(super) debug_info: u64,
    /// Name and CRC-32 of its separate debug file.
    pub(super) debug_link: Option<(Vec<u8>, u32)>,
    /// Bytes that its compressed sections claim to become.
    decompressed: u64,
    /// Whether its functions are Go's, whose names have dots.
    pub(super) is_go: bool,
    /// Its compressed symbol table (`.gnu_debugdata`).
    mini_symbols: Option<Vec<u8>>,
}

struct Segment {
    file_start: u64,
    file_len: u64,
    address: u64,
    executable: bool,
}

/// A compressed symbol table longer than this is none: those of the largest programs take a few megabytes.
const MAX_MINI_SYMBOLS: u64 = 64 << 20;

/// What compressed sections of a file, or its compressed symbol table, may become in memory, in bytes.
const MAX_DECOMPRESSED: u64 = 2 << 30;

impl ElfFile {
    /// Reads the headers. Missing section headers do not matter for addresses.
    pub(super) fn read(file: &File) -> object::Result<Self> {
        let cache = BoundedFile::new(file);
        let elf = object::File::parse(&cache)?;
        let segments = elf.segments().map(|segment| {
            let (file_start, file_len) = segment.file_range();
            let executable = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
            Segment { file_start, file_len, address: segment.address(), executable }
        });
        let segments = segments.collect();
        let mut found = Self {
            segments,
            has_symbols: false,
            has_exports: false,
            has_linkage_table: false,
            code: Vec::new(),
            debug_info: 0,
            debug_link: elf.gnu_debuglink().ok().flatten().map(|(name, crc)| (name.to_vec(), crc)),
            decompressed: 0,
            mini_symbols: None,
            is_go: false,
        };
        for section in elf.sections() {
            let is_code = matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(SHF_EXECINSTR) != 0);
            if is_code && let Ok(name) = section.name_bytes() {
                found.code.push((name.to_vec(), section.address(), section.size()));
            }
            let in_file = section.file_range().is_some_and(|(_, size)| size > 0);
            if !in_file || section.kind() == SectionKind::UninitializedData {
                continue;
            }
            let compressed = matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(SHF_COMPRESSED) != 0);
            if compressed {
                let size = section.compressed_file_range().map_or(u64::MAX, |range| range.uncompressed_size);
                found.decompressed = found.decompressed.saturating_add(size);
            }
            match section.name_bytes() {
                Ok(b".symtab") => found.has_symbols = true,
                Ok(b".gopclntab") => found.is_go = true,
                Ok(b".dynsym") => found.has_exports = true,
                Ok(name) if linkage::is_table(name) => found.has_linkage_table = true,
                Ok(b".debug_info") => found.debug_info = section.size(),
                Ok(b".gnu_debugdata") if section.size() <= MAX_MINI_SYMBOLS => {
                    found.mini_symbols = section.data().ok().map(<[u8]>::to_vec);
                    found.has_symbols |= found.mini_symbols.is_some();
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether a separate debug file has its code where this file has it. A build id alone does not prove that: programs that rewrite code keep
    /// that of the original. Without section headers there is nothing to compare.
    pub(super) fn has_code_of(&self, debug: &Self) -> bool {
        self.code.is_empty() || debug.code.is_empty() || self.code == debug.code
    }

    /// Where its sections with code lie when they are loaded; separate debug files tell it too.
    pub(super) fn code(&self) -> impl Iterator<Item = Range<u64>> {
        self.code.iter().map(|(_, address, size)| *address..address.saturating_add(*size))
    }

    /// Refuses a file whose sections would fill all memory when they are decompressed, as they claim or really are.
    pub(super) fn check_sizes(&self) -> Result<(), String> {
        let too_large = || Err(format!("its sections become more than {} GiB", MAX_DECOMPRESSED >> 30));
        if self.decompressed > MAX_DECOMPRESSED {
            return too_large();
        }
        let Some(mini) = &self.mini_symbols else { return Ok(()) };
        let mut decoder = xz2::read::XzDecoder::new(mini.as_slice()).take(MAX_DECOMPRESSED);
        match io::copy(&mut decoder, &mut io::sink()) {
            Ok(len) if len < MAX_DECOMPRESSED => Ok(()),
            Ok(_) => too_large(),
            Err(error) => Err(format!("its .gnu_debugdata cannot be decompressed: {error}")),
        }
    }

    /// The address of this byte of the file when it is loaded.
    ///
    /// A page at the border of two segments is in both; code is in the executable one.
    pub(super) fn address(&self, offset: FileOffset) -> Option<ElfAddress> {
        let holding = |segment: &&Segment| {
            offset.0.checked_sub(segment.file_start).is_some_and(|at| at < segment.file_len)
        };
        let executable = self.segments.iter().filter(|segment| segment.executable).find(holding);
        let segment = executable.or_else(|| self.segments.iter().find(holding))?;
        Some(ElfAddress((offset.0 - segment.file_start).wrapping_add(segment.address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_page_belongs_to_the_executable_segment() {
        let segment =
            |file_start, file_len, address, executable| Segment { file_start, file_len, address, executable };
        let elf = ElfFile {
            segments: vec![segment(0, 0x1100, 0, false), segment(0x1000, 0x800, 0x2000, true)],
            ..ElfFile::read(&File::open("/proc/self/exe").unwrap()).unwrap()
        };
        assert_eq!(elf.address(FileOffset(0x1010)), Some(ElfAddress(0x2010)));
        assert_eq!(elf.address(FileOffset(0x10)), Some(ElfAddress(0x10)));
        assert_eq!(elf.address(FileOffset(0x1800)), None);
    }

    #[test]
    fn this_program_has_symbols_and_unit_entries() {
        let elf = ElfFile::read(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(elf.has_symbols && elf.debug_info > 0);
        assert!(elf.debug_link.is_none() && elf.mini_symbols.is_none() && elf.decompressed == 0);
    }
}
