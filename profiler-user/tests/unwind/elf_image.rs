//! An ELF file in memory, by its section headers: the compiler under test goes by program headers.

use std::fs;
use std::ops::Range;
use std::path::Path;

use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _};

pub(crate) struct ElfImage {
    /// Addresses of the loaded segments with code, and where each begins in the file.
    pub code: Vec<(Range<u64>, u64)>,
    /// Addresses of linkage tables, `_init` and `_fini`.
    pub linker_code: Vec<Range<u64>>,
    pub eh_frame: Section,
    pub eh_frame_hdr: Section,
}

#[derive(Clone)]
pub(crate) struct Section {
    pub addresses: Range<u64>,
    pub data: Vec<u8>,
}

impl ElfImage {
    pub(crate) fn read(file: &Path) -> Self {
        let bytes = fs::read(file).expect("a file that can be read");
        let elf = ElfFile::<FileHeader64<LittleEndian>>::parse(&*bytes).expect("an ELF file");
        let section = |name| {
            let section = elf.section_by_name(name).unwrap_or_else(|| panic!("no {name}"));
            let data = section.data().expect("the bytes of a section").to_vec();
            Section { addresses: section.address()..section.address() + section.size(), data }
        };
        let headers = elf.elf_header().program_headers(LittleEndian, &*bytes).expect("program headers");
        let code = headers.iter().filter(|header| {
            header.p_type(LittleEndian) == PT_LOAD && header.p_flags(LittleEndian) & PF_X != 0
        });
        let code = code.map(|header| {
            let start = header.p_vaddr(LittleEndian);
            (start..start + header.p_filesz(LittleEndian), header.p_offset(LittleEndian))
        });
        let linker_code = [".plt", ".plt.sec", ".plt.got", ".iplt", ".init", ".fini"];
        let linker_code = linker_code.into_iter().filter_map(|name| elf.section_by_name(name));
        let linker_code = linker_code.map(|section| section.address()..section.address() + section.size());
        let linker_code = linker_code.collect();
        Self {
            code: code.collect(),
            linker_code,
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
        }
    }

    /// Place in the file of the code at this address.
    pub(crate) fn offset(&self, address: u64) -> u64 {
        let segment = self.code.iter().find(|(addresses, _)| addresses.contains(&address));
        let (addresses, offset) = segment.expect("an address of code");
        address - addresses.start + offset
    }
}
