//! Where an ELF file keeps its call-frame information. `.eh_frame` is found by program headers: section headers may be stripped.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::elf::{
    EM_AARCH64, EM_X86_64, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR,
};
use object::read::ReadRef;
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _};

use super::CompileError;
use super::compressed::unpack;
use super::linker_code::{LinkerCode, sections};
use super::rules::Machine;
use crate::bounded_file::BoundedFile;

/// Call-frame information of one object, in memory.
pub(super) struct CallFrames {
    pub machine: Machine,
    /// Loaded segments with code, for turning addresses into file offsets.
    pub code: Vec<Segment>,
    /// What it is kept in, at least one: where two describe a function, the first counts.
    pub sources: Vec<Source>,
    /// Code that may lack it, by address.
    pub linker_code: Vec<LinkerCode>,
}

/// What it is kept in.
pub(super) enum Source {
    /// `.eh_frame`, with the index before it where there is one.
    EhFrame { index: Option<Bytes>, frames: Bytes },
    /// `.debug_frame`, and the addresses of the sections with code, in order: functions elsewhere are none.
    DebugFrame { frames: Vec<u8>, code: Vec<Range<u64>> },
}

/// Bytes of call-frame information that make a row: 5.0 to 6.2 in libraries and programs by GCC, LLVM and rustc.
const BYTES_PER_ROW: usize = 6;

/// Rows of a function: 7 to 12 in the same. An entry of the index has 8 bytes.
const ROWS_PER_FUNCTION: usize = 10;

impl Source {
    /// About how many rows it will make. Without section headers it may reach to the end of its segment, so the index is heard too.
    pub(super) fn expected_rows(&self) -> usize {
        let by_functions = match self {
            Self::EhFrame { index: Some(index), .. } => index.data.len() / 8 * ROWS_PER_FUNCTION,
            _ => usize::MAX,
        };
        usize::min(self.len() / BYTES_PER_ROW, by_functions)
    }

    /// Bytes of its entries.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::EhFrame { frames, .. } => frames.data.len(),
            Self::DebugFrame { frames, .. } => frames.len(),
        }
    }
}

/// A range of the file with the address it is loaded at.
pub(super) struct Bytes {
    pub address: u64,
    pub data: Vec<u8>,
}

/// A loaded segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub address: u64,
    pub offset: u64,
    pub len: u64,
}

impl Segment {
    /// Place in the file of this address.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.address).filter(|at| *at < self.len)?;
        Some(self.offset + at)
    }
}

/// More call-frame information than any real object has.
const MAX_BYTES: u64 = 1 << 29;

/// More bytes of a PLT than any real object has: a quarter of a million entries.
const MAX_LINKER_CODE: u64 = 1 << 22;

/// More loaded segments with code than any real object has. Each function is looked for in all of them.
const MAX_CODE_SEGMENTS: usize = 64;

type Elf<'a, R> = ElfFile<'a, FileHeader64<LittleEndian>, R>;

/// Reads it.
pub(super) fn read(file: &File) -> Result<CallFrames, CompileError> {
    let cache = BoundedFile::new(file);
    let elf: Elf<'_, _> = ElfFile::parse(&cache).map_err(|_| CompileError::NotElf64)?;
    let machine = match elf.elf_header().e_machine(LittleEndian) {
        EM_X86_64 => Machine::X86_64,
        EM_AARCH64 => Machine::Aarch64,
        _ => return Err(CompileError::Machine),
    };
    let file_len = file.metadata()?.len();
    let (mut code, mut loaded, mut index) = (Vec::new(), Vec::new(), None);
    for header in elf.elf_program_headers() {
        // A header can claim any length; the file cannot be longer than it is.
        let offset = header.p_offset(LittleEndian).min(file_len);
        let len = header.p_filesz(LittleEndian).min(file_len - offset);
        let segment = Segment { address: header.p_vaddr(LittleEndian), offset, len };
        match header.p_type(LittleEndian) {
            PT_LOAD => {
                loaded.push(segment);
                if header.p_flags(LittleEndian) & PF_X != 0 {
                    code.push(segment);
                }
            }
            PT_GNU_EH_FRAME => index = Some(segment),
            _ => {}
        }
    }
    if code.len() > MAX_CODE_SEGMENTS {
        return Err(CompileError::TooLarge);
    }
    let eh_frame = match index {
        Some(index) => by_index(file, index, &loaded),
        None => eh_frame_section(&elf),
    };
    let sources = present([eh_frame, debug_frame(&elf, file)])?;
    let linker_code = linker_code(&elf, file, &code);
    Ok(CallFrames { machine, code, sources, linker_code })
}

/// Those that can be read; when there is none, why.
fn present(found: [Result<Source, CompileError>; 2]) -> Result<Vec<Source>, CompileError> {
    let (mut sources, mut refusal) = (Vec::new(), None);
    for source in found {
        match source {
            Ok(source) => sources.push(source),
            Err(CompileError::NoFrames) => {}
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    if sources.is_empty() { Err(refusal.unwrap_or(CompileError::NoFrames)) } else { Ok(sources) }
}

/// The index says where `.eh_frame` begins (LSB Core, `.eh_frame_hdr`); it ends with its segment at the latest.
fn by_index(file: &File, index: Segment, loaded: &[Segment]) -> Result<Source, CompileError> {
    let index = read_bytes(file, index)?;
    let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(index.address);
    let header = gimli::EhFrameHdr::new(&index.data, gimli::LittleEndian).parse(&bases, 8)?;
    let gimli::Pointer::Direct(address) = header.eh_frame_ptr() else {
        return Err(CompileError::NoFrames);
    };
    let segment = loaded.iter().find(|segment| segment.offset_of(address).is_some());
    let segment = segment.ok_or(CompileError::NoFrames)?;
    let skipped = address - segment.address;
    let frames = Segment { address, offset: segment.offset + skipped, len: segment.len - skipped };
    let frames = read_bytes(file, frames)?;
    Ok(Source::EhFrame { index: Some(index), frames })
}

fn eh_frame_section<'a, R: ReadRef<'a>>(elf: &Elf<'a, R>) -> Result<Source, CompileError> {
    let section = elf.section_by_name(".eh_frame").filter(|section| section.size() > 0);
    let section = section.ok_or(CompileError::NoFrames)?;
    if section.size() > MAX_BYTES {
        return Err(CompileError::TooLarge);
    }
    let data = section.data().map_err(|_| CompileError::NoFrames)?.to_vec();
    Ok(Source::EhFrame { index: None, frames: Bytes { address: section.address(), data } })
}

fn debug_frame<'a, R: ReadRef<'a>>(elf: &Elf<'a, R>, file: &File) -> Result<Source, CompileError> {
    let section = elf.section_by_name(".debug_frame").filter(|section| section.size() > 0);
    let section = section.filter(|_| !is_rearranged(elf)).ok_or(CompileError::NoFrames)?;
    let frames = unpack(file, section.compressed_file_range().map_err(|_| CompileError::NoFrames)?)?;
    let flags = u64::from(SHF_ALLOC | SHF_EXECINSTR);
    let code =
        elf.sections().filter(|section| section.elf_section_header().sh_flags(LittleEndian) & flags == flags);
    let code = code.map(|section| section.address()..section.address().saturating_add(section.size()));
    let mut code: Vec<Range<u64>> = code.collect();
    code.sort_by_key(|code| code.start);
    Ok(Source::DebugFrame { frames, code })
}

/// Whether BOLT has moved functions: it writes `.eh_frame` anew, and leaves `.debug_frame` as it was for the old places, where other functions
/// may be now.
fn is_rearranged<'a, R: ReadRef<'a>>(elf: &Elf<'a, R>) -> bool {
    elf.sections().any(|section| section.name_bytes().is_ok_and(|name| name.starts_with(b".bolt.org.")))
}

/// Where the section headers are stripped it stays unknown.
fn linker_code<'a, R: ReadRef<'a>>(elf: &Elf<'a, R>, file: &File, code: &[Segment]) -> Vec<LinkerCode> {
    let read = |(name, kind)| {
        let section =
            elf.section_by_name(name).filter(|section| (1..=MAX_LINKER_CODE).contains(&section.size()))?;
        let (address, len) = (section.address(), section.size());
        let segment = code.iter().find(|segment| segment.offset_of(address).is_some())?;
        let offset = segment.offset_of(address)?;
        segment.offset_of(address.checked_add(len - 1)?)?;
        let code = read_bytes(file, Segment { address, offset, len }).ok()?.data;
        Some(LinkerCode { kind, address, offset, code })
    };
    let mut found: Vec<LinkerCode> = sections().filter_map(read).collect();
    found.sort_by_key(|code| code.address);
    found
}

fn read_bytes(file: &File, Segment { address, offset, len }: Segment) -> Result<Bytes, CompileError> {
    if len > MAX_BYTES {
        return Err(CompileError::TooLarge);
    }
    let mut data = vec![0; usize::try_from(len).map_err(|_| CompileError::TooLarge)?];
    file.read_exact_at(&mut data, offset)?;
    Ok(Bytes { address, data })
}
