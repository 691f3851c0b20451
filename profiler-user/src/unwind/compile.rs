//! The compiler: all functions of an object, row by row.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use gimli::{
    BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EhFrameHdr, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindContext, UnwindOffset, UnwindSection,
};
use profiler_common::unwind::row::{Cfa, Rule};

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

/// Compiles the table of an object.
///
/// # Errors
///
/// When there is nothing to compile. A function that is malformed is left out and costs only itself.
pub fn compile(file: &File) -> Result<Table, CompileError> {
    let CallFrames { machine, code, source } = elf::read(file)?;
    let mut compiler = Compiler { machine, code, builder: TableBuilder::default(), context: Box::default() };
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
            let Ok(offset) = table.pointer_to_offset(pointer) else { continue };
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
        let Some(segment) = segment else { return Ok(()) };
        // Addresses of one function stay within its segment.
        let offset =
            |address: u64| segment.offset + (address.clamp(start, end) - segment.address).min(segment.len);
        if self.builder.len() > MAX_RULES {
            return Err(CompileError::TooLarge);
        }
        if function.is_signal_trampoline() {
            self.builder.begin(offset(start), Rule::only(Cfa::Signal));
        } else {
            let Ok(mut rows) = function.rows(section, bases, &mut self.context) else { return Ok(()) };
            loop {
                match rows.next_row() {
                    Ok(Some(row)) => {
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
