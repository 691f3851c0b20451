//! The compiler: all functions of an object, row by row.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;

use gimli::{
    BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Pointer, UnwindContext, UnwindOffset, UnwindSection, Vendor,
};
use profiler_common::limits::MAX_ROW_PAGES;
use profiler_common::unwind::row::{Cfa, ROW_PAGE_SHIFT, Rule};

use super::debug_frame::functions;
use super::elf::{self, Bytes, CallFrames, Segment, Source};
use super::linker_code::LinkerCode;
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
    compile_expecting(file, &|_| ())
}

/// As [`compile`]. `expect` hears before the work begins how many rows there will be, more or less.
pub(super) fn compile_expecting(file: &File, expect: &dyn Fn(usize)) -> Result<Table, CompileError> {
    let frames = elf::read(file)?;
    expect(frames.sources.iter().map(Source::expected_rows).sum());
    all_sources(&frames)
}

/// The table of all sources, each of which fills what those before it leave open. Linker code fills what is left.
fn all_sources(frames: &CallFrames) -> Result<Table, CompileError> {
    let (mut all, mut refusal) = (None, CompileError::NoFrames);
    let mut linker_code = frames.linker_code.as_slice();
    for source in frames.sources.iter().rev() {
        match one_source(frames, source, linker_code) {
            Ok(table) => {
                all = Some(match all {
                    None => table,
                    Some(below) => table.filled_by(&below),
                });
                linker_code = &[];
            }
            Err(error) => refusal = error,
        }
    }
    all.ok_or(refusal)
}

fn one_source(
    frames: &CallFrames,
    source: &Source,
    linker_code: &[LinkerCode],
) -> Result<Table, CompileError> {
    match table(frames, source, linker_code, TableBuilder::ordered(source.expected_rows()))? {
        Some(table) => Ok(table),
        // Functions that overlap, or whose order in the file is not that of their addresses.
        None => Ok(table(frames, source, linker_code, TableBuilder::collecting())?.unwrap_or_default()),
    }
}

/// The table that this builder makes; `None` when the functions are not in the order that it needs.
fn table(
    frames: &CallFrames,
    source: &Source,
    linker_code: &[LinkerCode],
    builder: TableBuilder,
) -> Result<Option<Table>, CompileError> {
    let mut compiler = Compiler {
        machine: frames.machine,
        code: &frames.code,
        linker_code: linker_code.iter().collect(),
        builder,
        context: Box::default(),
        work_left: source.len().saturating_mul(MAX_WORK),
    };
    match source {
        Source::EhFrame { index, frames } => compiler.eh_frame(index.as_ref(), frames)?,
        Source::DebugFrame { frames, code } => compiler.debug_frame(frames, code)?,
    }
    compiler.linker_code_before(u64::MAX);
    Ok(compiler.builder.build())
}

struct Compiler<'a> {
    machine: Machine,
    code: &'a [Segment],
    /// Code that no function so far describes, by address.
    linker_code: VecDeque<&'a LinkerCode>,
    builder: TableBuilder,
    context: Box<UnwindContext<<Slice<'a> as gimli::Reader>::Offset>>,
    /// Bytes of entries that may still be worked through.
    work_left: usize,
}

impl<'a> Compiler<'a> {
    fn eh_frame(&mut self, index: Option<&'a Bytes>, frames: &'a Bytes) -> Result<(), CompileError> {
        let mut section = EhFrame::new(&frames.data, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(vendor(self.machine));
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
            match function {
                Ok(function) => self.function(&function, u64::MAX, &section, &bases)?,
                // To find that out may have taken as long as reading a good part of the section.
                Err(_) => self.work(frames.data.len() / 64)?,
            }
        }
        Ok(())
    }

    /// All functions of a section without index, one after the other. What is malformed ends it: the next entry cannot be found.
    fn entries(&mut self, section: &EhFrame<Slice<'a>>, bases: &BaseAddresses) -> Result<(), CompileError> {
        let mut entries = section.entries(bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(function) = partial.parse(EhFrame::cie_from_offset)
            {
                self.function(&function, u64::MAX, section, bases)?;
            }
        }
        Ok(())
    }

    fn debug_frame(&mut self, frames: &'a [u8], code: &[Range<u64>]) -> Result<(), CompileError> {
        let mut section = DebugFrame::new(frames, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(vendor(self.machine));
        let bases = BaseAddresses::default();
        for found in functions(&section, frames, code, self.work_left)? {
            let function = section.fde_from_offset(&bases, found.entry, DebugFrame::cie_from_offset)?;
            self.function(&function, found.until, &section, &bases)?;
        }
        Ok(())
    }

    /// Writes the rules of a function, up to this address.
    fn function<S>(
        &mut self,
        function: &FrameDescriptionEntry<Slice<'a>>,
        until: u64,
        section: &S,
        bases: &BaseAddresses,
    ) -> Result<(), CompileError>
    where
        S: UnwindSection<Slice<'a>>,
    {
        self.work(function.entry_len().saturating_add(function.cie().entry_len()))?;
        let (start, end) = (function.initial_address(), function.end_address().min(until));
        let segment = self.code.iter().find(|segment| segment.offset_of(start).is_some()).copied();
        let Some(segment) = segment.filter(|_| start < end) else { return Ok(()) };
        if !self.linker_code.is_empty() {
            self.linker_code.retain(|code| !code.contains(start));
            self.linker_code_before(start);
        }
        // Addresses of one function stay within its segment.
        let offset =
            |address: u64| segment.offset + (address.clamp(start, end) - segment.address).min(segment.len);
        if offset(end) > MAX_CODE_OFFSET {
            return Err(CompileError::TooLarge);
        }
        let Ok(mut rows) = function.rows(section, bases, &mut self.context) else { return Ok(()) };
        loop {
            match rows.next_row() {
                // A row may begin where the function ends, and so say nothing.
                Ok(Some(row)) if row.start_address() >= end => {}
                Ok(Some(row)) => {
                    if self.builder.len() > MAX_RULES {
                        return Err(CompileError::TooLarge);
                    }
                    let rule = self.machine.rule(row, function.is_signal_trampoline(), section);
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
        self.builder.end(offset(end));
        Ok(())
    }

    /// Writes the rules of what ends before this address: functions come by address, so none describes it any more.
    fn linker_code_before(&mut self, address: u64) {
        let is_before = |code: &&LinkerCode| code.end() <= address;
        while self.linker_code.front().is_some_and(is_before)
            && let Some(code) = self.linker_code.pop_front()
        {
            let (rules, end) = (code.rules(self.machine), code.offset + code.code.len() as u64);
            if !rules.is_empty() && end <= MAX_CODE_OFFSET {
                rules.into_iter().for_each(|(at, rule)| self.builder.begin(code.offset + at, rule));
                self.builder.end(end);
            }
        }
    }

    fn work(&mut self, bytes: usize) -> Result<(), CompileError> {
        self.work_left = self.work_left.checked_sub(bytes).ok_or(CompileError::TooLarge)?;
        Ok(())
    }
}

/// Whose own instructions there may be: aarch64's say that a return address is signed (AADWARF64 §4.4).
const fn vendor(machine: Machine) -> Vendor {
    match machine {
        Machine::X86_64 => Vendor::Default,
        Machine::Aarch64 => Vendor::AArch64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::Table;
    use crate::unwind::linker_code::Kind;

    const FRAMES: u64 = 0x1000;
    const CODE: u64 = 0x1_0000;

    /// An entry that all functions share: the caller's frame begins 8 bytes above the stack pointer.
    fn common() -> Vec<u8> {
        let mut entry = vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
        entry[0] = entry.len() as u8 - 4;
        entry
    }

    /// The function that follows `before`, with these instructions.
    fn function(before: &[u8], address: u64, len: u64, instructions: &[u8]) -> Vec<u8> {
        let size = 4 + 16 + instructions.len() as u32;
        let to_common = before.len() as u32 + 4;
        let words = [size.to_le_bytes(), to_common.to_le_bytes()].concat();
        [&words[..], &address.to_le_bytes(), &len.to_le_bytes(), instructions].concat()
    }

    /// An index with these functions, by their places in [`FRAMES`].
    fn index(functions: &[u64]) -> Bytes {
        // Version, and encodings: 8 bytes, 4 bytes, 8 bytes.
        let mut data = vec![1, 0x04, 0x03, 0x04];
        data.extend(FRAMES.to_le_bytes());
        data.extend((functions.len() as u32).to_le_bytes());
        for place in functions {
            data.extend(CODE.to_le_bytes());
            data.extend(FRAMES.wrapping_add(*place).to_le_bytes());
        }
        Bytes { address: 0x100, data }
    }

    fn compiled(index: Option<&Bytes>, data: Vec<u8>) -> Result<Table, CompileError> {
        let frames = Bytes { address: FRAMES, data };
        let mut compiler = Compiler {
            machine: Machine::X86_64,
            code: &[Segment { address: CODE, offset: 0, len: 0x1000 }],
            linker_code: VecDeque::new(),
            builder: TableBuilder::collecting(),
            context: Box::default(),
            work_left: frames.data.len() * MAX_WORK,
        };
        compiler.eh_frame(index, &frames)?;
        Ok(compiler.builder.build().unwrap())
    }

    /// Of an object with these sources, whose linker code is a PLT at 0x40 of the code.
    fn compiled_from(sources: Vec<Source>) -> Result<Table, CompileError> {
        // jmp *word(%rip); xchg %ax, %ax
        let plt = [0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90].repeat(2);
        let plt = LinkerCode { kind: Kind::Plt, address: CODE + 0x40, offset: 0x40, code: plt };
        all_sources(&CallFrames {
            machine: Machine::X86_64,
            code: vec![Segment { address: CODE, offset: 0, len: 0x1000 }],
            sources,
            linker_code: vec![plt],
        })
    }

    /// These functions, by address and length, each with the same frame.
    fn eh_frame(functions: &[(u64, u64)], frame: u8) -> Source {
        let mut data = common();
        for (address, len) in functions {
            data.extend(function(&data, CODE + address, *len, &[0x0e, frame]));
        }
        data.extend([0; 4]);
        Source::EhFrame { index: None, frames: Bytes { address: FRAMES, data } }
    }

    /// The same in the other section.
    fn debug_frame(functions: &[(u64, u64)], frame: u8) -> Source {
        let mut frames = common();
        frames[4..8].fill(0xff);
        for (address, len) in functions {
            let mut function = function(&[], CODE.wrapping_add(*address), *len, &[0x0e, frame]);
            function[4..8].fill(0);
            frames.extend(function);
        }
        Source::DebugFrame { frames, code: std::iter::once(CODE..CODE + 0x1000).collect() }
    }

    #[test]
    fn debug_frame_fills_what_eh_frame_leaves_open() {
        // In any order, one function in both, one that reaches into the next, one that was dropped.
        let debug = debug_frame(&[(0x80, 0x10), (0x20, 0x10), (0, 0x200), (CODE.wrapping_neg(), 0x800)], 16);
        let table = compiled_from(vec![eh_frame(&[(0x20, 0x10), (0x30, 8)], 32), debug]).unwrap();
        assert_eq!(
            rows(&table),
            [
                (0, Cfa::Sp(16)),
                (0x20, Cfa::Sp(32)),
                (0x38, Cfa::Nothing),
                (0x40, Cfa::Sp(8)),
                (0x50, Cfa::Nothing),
                (0x80, Cfa::Sp(16)),
                (0x90, Cfa::Nothing),
            ]
        );
    }

    #[test]
    fn a_function_of_aarch64_may_sign_its_return_address() {
        // paciasp; then a frame of 16 bytes, whose first word is the link register.
        let instructions = [0x41, 0x2d, 0x41, 0x0e, 16, 0x80 | 30, 2];
        let mut data = vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0x78, 30, 0x0c, 31, 0];
        data[0] = data.len() as u8 - 4;
        data.extend(function(&data, CODE, 16, &instructions));
        data.extend([0; 4]);
        let mut frames = CallFrames {
            machine: Machine::Aarch64,
            code: vec![Segment { address: CODE, offset: 0, len: 0x1000 }],
            sources: vec![Source::EhFrame { index: None, frames: Bytes { address: FRAMES, data } }],
            linker_code: Vec::new(),
        };
        assert_eq!(
            rows(&all_sources(&frames).unwrap()),
            [(0, Cfa::Sp(0)), (8, Cfa::Sp(16)), (16, Cfa::Nothing)]
        );
        // The same number is an instruction of nobody on x86_64.
        frames.machine = Machine::X86_64;
        assert_eq!(rows(&all_sources(&frames).unwrap())[0], (0, Cfa::Unsupported));
    }

    #[test]
    fn linker_code_has_rules_where_no_source_has_them() {
        let plt = [(0x40, Cfa::Sp(8)), (0x50, Cfa::Nothing)];
        let sources = [eh_frame(&[(0, 8)], 16), debug_frame(&[(0, 8)], 16)];
        for source in sources {
            let table = compiled_from(vec![source]).unwrap();
            assert_eq!(rows(&table)[2..], plt);
        }
        let table = compiled_from(vec![eh_frame(&[(0x40, 0x10)], 16), debug_frame(&[], 16)]).unwrap();
        assert_eq!(rows(&table)[1..], [(0x40, Cfa::Sp(16)), (0x50, Cfa::Nothing)]);
        let table = compiled_from(vec![eh_frame(&[], 16), debug_frame(&[(0x40, 0x10)], 16)]).unwrap();
        assert_eq!(rows(&table)[1..], [(0x40, Cfa::Sp(16)), (0x50, Cfa::Nothing)]);
    }

    #[test]
    fn a_source_that_cannot_be_compiled_leaves_the_other() {
        let garbage = || Source::EhFrame {
            index: Some(Bytes { address: 0x100, data: vec![0xff; 64] }),
            frames: Bytes { address: FRAMES, data: Vec::new() },
        };
        assert!(matches!(compiled_from(vec![garbage()]), Err(CompileError::Malformed(_))));
        let table = compiled_from(vec![garbage(), debug_frame(&[(0, 8)], 16)]).unwrap();
        assert_eq!(rows(&table)[..2], [(0, Cfa::Sp(16)), (8, Cfa::Nothing)]);
    }

    fn rows(table: &Table) -> Vec<(u32, Cfa)> {
        let rows = table.pages().iter().flat_map(|page| table.rows(*page));
        rows.map(|row| (row.place(), row.rule().cfa)).collect()
    }

    #[test]
    fn a_row_at_the_end_of_a_function_does_not_reach_into_the_next() {
        let mut data = common();
        // After 16 bytes, where the function ends, the frame would begin at 48.
        data.extend(function(&data, CODE, 16, &[0x40 | 8, 0x0e, 16, 0x40 | 8, 0x0e, 48]));
        data.extend(function(&data, CODE + 16, 16, &[]));
        data.extend([0; 4]);
        assert_eq!(
            rows(&compiled(None, data).unwrap()),
            [(0, Cfa::Sp(8)), (8, Cfa::Sp(16)), (16, Cfa::Sp(8)), (32, Cfa::Nothing)]
        );
    }

    #[test]
    fn what_the_index_names_in_vain_is_left_out() {
        let mut data = common();
        let place = data.len() as u64;
        data.extend(function(&data, CODE, 16, &[]));
        let table = compiled(Some(&index(&[u64::MAX, place, 1 << 40])), data).unwrap();
        assert_eq!(rows(&table), [(0, Cfa::Sp(8)), (16, Cfa::Nothing)]);
    }

    #[test]
    fn a_function_that_the_index_names_without_end_is_refused() {
        let mut data = common();
        let place = data.len() as u64;
        data.extend(function(&data, CODE, 16, &[]));
        assert!(matches!(compiled(Some(&index(&[place; 100])), data), Err(CompileError::TooLarge)));
    }

    #[test]
    fn a_function_that_ends_before_it_begins_is_left_out() {
        let mut data = common();
        data.extend(function(&data, CODE, u64::MAX, &[]));
        data.extend(function(&data, CODE + 16, 16, &[]));
        assert_eq!(
            rows(&compiled(None, data).unwrap()),
            [(0, Cfa::Nothing), (16, Cfa::Sp(8)), (32, Cfa::Nothing)]
        );
    }
}
