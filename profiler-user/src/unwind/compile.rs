//! The compiler: all functions of an object, row by row.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use gimli::{
    BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Pointer, UnwindContext, UnwindOffset, UnwindSection,
};
use profiler_common::limits::MAX_ROW_PAGES;
use profiler_common::unwind::row::{Cfa, ROW_PAGE_SHIFT, Rule};

use super::elf::{self, Bytes, CallFrames, Segment, Source};
use super::rules::Machine;
use super::table::{Table, TableBuilder};

/// Why an object has no table.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It cannot be read.
    #[error("its file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is no 64-bit little-endian ELF file.
    #[error("it is no 64-bit ELF file")]
    NotElf64,
    /// It is for another machine.
    #[error("it is for another machine")]
    Machine,
    /// It has no call-frame information.
    #[error("it has no call-frame information")]
    NoFrames,
    /// Its call-frame information is malformed.
    #[error("its call-frame information is malformed: {0}")]
    Malformed(#[from] gimli::Error),
    /// It has more of it than is reasonable.
    #[error("it has too much call-frame information")]
    TooLarge,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// More rules than any real object has; a table of them takes 512 MiB.
const MAX_RULES: usize = 1 << 26;

/// End of the code that the kernel side has pages for.
const MAX_CODE_OFFSET: u64 = (MAX_ROW_PAGES as u64) << ROW_PAGE_SHIFT;

/// Bytes of entries that are worked through for each byte of call-frame information. Functions share their common entries, which are worked
/// through for each; in real objects that makes less than 2. An index that names one function again and again would make any number.
const MAX_WORK: usize = 16;

/// Compiles the table of an object.
///
/// # Errors
///
/// When there is nothing to compile. A function that is malformed is left out and costs only itself.
pub fn compile(file: &File) -> Result<Table, CompileError> {
    let CallFrames { machine, code, source } = elf::read(file)?;
    let (Source::EhFrame { frames, .. } | Source::DebugFrame(frames)) = &source;
    let mut compiler = Compiler {
        machine,
        code,
        builder: TableBuilder::default(),
        context: Box::default(),
        work_left: frames.data.len().saturating_mul(MAX_WORK),
    };
    match &source {
        Source::EhFrame { index, frames } => compiler.eh_frame(index.as_ref(), frames)?,
        Source::DebugFrame(frames) => {
            let mut section = DebugFrame::new(&frames.data, LittleEndian);
            section.set_address_size(8);
            compiler.entries(&section, &BaseAddresses::default())?;
        }
    }
    Ok(compiler.builder.build())
}

struct Compiler<'a> {
    machine: Machine,
    code: Vec<Segment>,
    builder: TableBuilder,
    context: Box<UnwindContext<<Slice<'a> as gimli::Reader>::Offset>>,
    /// Bytes of entries that may still be worked through.
    work_left: usize,
}

impl<'a> Compiler<'a> {
    fn eh_frame(&mut self, index: Option<&'a Bytes>, frames: &'a Bytes) -> Result<(), CompileError> {
        let mut section = EhFrame::new(&frames.data, LittleEndian);
        section.set_address_size(8);
        let mut bases = BaseAddresses::default().set_eh_frame(frames.address);
        let Some(index) = index else {
            return self.entries(&section, &bases);
        };
        bases = bases.set_eh_frame_hdr(index.address);
        let header = EhFrameHdr::new(&index.data, LittleEndian).parse(&bases, 8)?;
        let Some(table) = header.table() else {
            return self.entries(&section, &bases);
        };
        // Functions share their common entries, so each is parsed once.
        let mut common: HashMap<usize, CommonInformationEntry<Slice<'a>>> = HashMap::new();
        let mut functions = table.iter(&bases);
        while let Some((_, pointer)) = functions.next()? {
            let Pointer::Direct(address) = pointer else { continue };
            let offset = address.checked_sub(frames.address).and_then(|offset| usize::try_from(offset).ok());
            let Some(offset) = offset.map(EhFrameOffset) else { continue };
            let function = section.fde_from_offset(&bases, offset, |section, bases, offset| {
                if let Some(entry) = common.get(&UnwindOffset::into(offset)) {
                    return Ok(entry.clone());
                }
                let entry = section.cie_from_offset(bases, offset)?;
                common.insert(UnwindOffset::into(offset), entry.clone());
                Ok(entry)
            });
            if let Ok(function) = function {
                self.function(&function, &section, &bases)?;
            }
        }
        Ok(())
    }

    /// All functions of a section, one after the other. What is malformed ends it: the next entry cannot be found.
    fn entries<S>(&mut self, section: &S, bases: &BaseAddresses) -> Result<(), CompileError>
    where
        S: UnwindSection<Slice<'a>>,
        S::Offset: UnwindOffset<usize>,
    {
        let mut entries = section.entries(bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(function) = partial.parse(S::cie_from_offset)
            {
                self.function(&function, section, bases)?;
            }
        }
        Ok(())
    }

    fn function<S>(
        &mut self,
        function: &FrameDescriptionEntry<Slice<'a>>,
        section: &S,
        bases: &BaseAddresses,
    ) -> Result<(), CompileError>
    where
        S: UnwindSection<Slice<'a>>,
    {
        let (start, end) = (function.initial_address(), function.end_address());
        let segment = self.code.iter().find(|segment| segment.offset_of(start).is_some()).copied();
        let Some(segment) = segment.filter(|_| start < end) else { return Ok(()) };
        // Addresses of one function stay within its segment.
        let offset =
            |address: u64| segment.offset + (address.clamp(start, end) - segment.address).min(segment.len);
        let work = function.entry_len().saturating_add(function.cie().entry_len());
        self.work_left = self.work_left.checked_sub(work).ok_or(CompileError::TooLarge)?;
        if offset(end) > MAX_CODE_OFFSET {
            return Err(CompileError::TooLarge);
        }
        if function.is_signal_trampoline() {
            self.builder.begin(offset(start), Rule::only(Cfa::Signal));
        } else {
            let Ok(mut rows) = function.rows(section, bases, &mut self.context) else { return Ok(()) };
            loop {
                match rows.next_row() {
                    // A row may begin where the function ends, and so say nothing.
                    Ok(Some(row)) if row.start_address() >= end => {}
                    Ok(Some(row)) => {
                        if self.builder.len() > MAX_RULES {
                            return Err(CompileError::TooLarge);
                        }
                        let rule = self.machine.rule(row, section);
                        self.builder.begin(offset(row.start_address()), rule);
                    }
                    Ok(None) => break,
                    Err(_) => {
                        // Where the account breaks off is not known; none of it is believed.
                        self.builder.begin(offset(start), Rule::only(Cfa::Unsupported));
                        break;
                    }
                }
            }
        }
        self.builder.end(offset(end));
        Ok(())
    }
}
