//! The same caller as two other readers find, at random places of real objects. Each way to differ has a name and a bound.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use bpfprof::unwind::compile;
use profiler_common::stack::StackEnd;
use profiler_common::unwind::row::{Cfa, Rule, Saved};
use profiler_common::unwind::search::find_row;
use profiler_common::unwind::step::{self, Caller, SignalFrame};
use profiler_common::unwind::{Kept, Registers};

use crate::elf_image::ElfImage;
use crate::objects;
use crate::random::Random;
use crate::second_opinion::{Account, CallFrames};
use crate::tables::TableInMemory;
use crate::third_opinion::Framehop;
use crate::walker::{self, Memory, Others};

const PLACES: u32 = 20_000;

/// How an answer relates to the others'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The same.
    Same,
    /// The rule takes a register that is not known. The table has no rule, and the other readers cannot use it either.
    OtherRegister,
    /// Where %rbx is does not fit into a row, or is told by an expression.
    WithoutBx,
    /// framehop knows no frame by %rbx, nor by registers of the innermost frame.
    ByAnyRegister,
    /// The rule takes an expression, or registers together, that rows do not know. The table has no rule.
    OtherForm,
    /// Code of a linker or of the C library that call-frame information leaves out. The table knows it by its instructions.
    LinkerCode,
    /// framehop goes on by frame pointer or to the return address where call-frame information says nothing.
    Guess,
    /// framehop evaluates no expression that reads memory, and follows the frame pointer instead.
    MemoryExpression,
}

impl Kind {
    /// Most places of [`PLACES`] where this is believed.
    fn bound(self) -> u32 {
        match self {
            Self::Same => PLACES,
            Self::OtherRegister | Self::OtherForm | Self::LinkerCode => PLACES / 40,
            Self::WithoutBx | Self::ByAnyRegister => PLACES / 40,
            Self::Guess | Self::MemoryExpression => PLACES / 4,
        }
    }
}

#[test]
fn objects_of_every_machine() {
    for file in objects::always_there() {
        compare(&file);
    }
}

#[test]
fn objects_of_tool_chains() {
    for file in objects::of_tool_chains() {
        compare(&file);
    }
}

fn compare(file: &Path) {
    let image = ElfImage::read(file);
    let table = compile(&File::open(file).expect("a file that can be read")).expect("a table");
    let mut comparison = Comparison {
        table: TableInMemory::new(&table),
        frames: CallFrames::new(&image),
        framehop: Framehop::new(&image),
        image: &image,
    };
    let mut random = Random::new(0x0b9f_0001);
    let functions = comparison.frames.functions();
    let (mut beside_gimli, mut beside_framehop) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..PLACES {
        // Half of the places anywhere, half near the beginning of a function, where rules change.
        let address = if number % 2 == 0 {
            let (code, _) = random.pick(&image.code);
            code.start + random.below(code.end - code.start)
        } else {
            random.pick(&functions) + random.below(48)
        };
        if !image.code.iter().any(|(code, _)| code.contains(&address)) {
            continue;
        }
        let (gimli, framehop) = comparison.at(address, random.below(2) == 0, &mut random);
        *beside_gimli.entry(gimli).or_insert(0) += 1;
        *beside_framehop.entry(framehop).or_insert(0) += 1;
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("{name}: {} rows, gimli {beside_gimli:?}, framehop {beside_framehop:?}", table.row_count());
    for (kind, count) in &beside_gimli {
        assert!(*count <= kind.bound(), "{name}: {kind:?} {count} times of {PLACES}");
    }
}

struct Comparison<'a> {
    image: &'a ElfImage,
    table: TableInMemory,
    frames: CallFrames<'a>,
    framehop: Framehop,
}

impl Comparison<'_> {
    /// How our answer at this address of the object relates to gimli's and to framehop's.
    fn at(&mut self, address: u64, is_exact: bool, random: &mut Random) -> (Kind, Kind) {
        // A return address is looked up one before, where its call is.
        let next = if is_exact { address } else { address + 1 };
        let registers = walker::registers(next, random);
        let row = find_row(&self.table.file_entry(), self.image.offset(address), &self.table);
        let machine = (&SignalFrame::X86_64, u64::MAX);
        let ours = step::caller(row, &registers, &Others, machine, &mut Memory);
        let ours = ours.map(|Caller { registers, .. }| {
            let bx = registers.bx.value(&mut Memory).map_or(Kept::Unknown, Kept::Value);
            Registers { bx, ..registers }
        });

        let rule = row.rule();

        let account = self.frames.caller(address, &registers);
        let differs = |other: &dyn std::fmt::Debug| -> ! {
            panic!("at {address:#x}, {registers:x?}: {rule:?} gives {ours:x?}, not {other:x?} ({account:x?})")
        };
        let is_linker_code = self.image.linker_code.iter().any(|code| code.contains(&address));
        let kind = match beside_gimli(ours, rule, account) {
            Some(kind) => kind,
            None if is_linker_code && account == Account::NoFunction && ours.is_ok() => Kind::LinkerCode,
            None => differs(&account),
        };
        let framehop = self.framehop.caller(&registers, is_exact);
        let beside = match (kind, ours, framehop) {
            (_, Ok(ours), Ok(Some(other))) if Registers { bx: other.bx, ..ours } == other => Kind::Same,
            (_, Err(StackEnd::Root), Ok(None)) => Kind::Same,
            (Kind::Same, Ok(_), _) if matches!(rule.cfa, Cfa::Deref(..) | Cfa::Signal) => {
                Kind::MemoryExpression
            }
            (Kind::Same, Ok(_), _)
                if matches!(rule.cfa, Cfa::Bx(_) | Cfa::Other(..)) || matches!(rule.ra, Saved::Other(_)) =>
            {
                Kind::ByAnyRegister
            }
            (_, Err(StackEnd::NoRule), _) => Kind::Guess,
            (Kind::LinkerCode, ..) => Kind::LinkerCode,
            (_, _, other) => differs(&other),
        };
        (kind, beside)
    }
}

fn beside_gimli(ours: Result<Registers, StackEnd>, rule: Rule, account: Account) -> Option<Kind> {
    match (ours, account) {
        (Ok(ours), Account::Caller { registers, .. }) if ours == registers => Some(Kind::Same),
        (Ok(ours), Account::Caller { registers, .. })
            if ours.bx == Kept::Unknown && Registers { bx: ours.bx, ..registers } == ours =>
        {
            Some(Kind::WithoutBx)
        }
        (Err(StackEnd::Root), Account::Root) => Some(Kind::Same),
        (Err(StackEnd::NoRule), Account::NoFunction) => Some(Kind::Same),
        (Err(StackEnd::NoRule), _) if rule.cfa != Cfa::Unsupported => None,
        (Err(StackEnd::NoRule), Account::OtherRegister) => Some(Kind::OtherRegister),
        (Err(StackEnd::NoRule), Account::Caller { is_special: true, .. }) => Some(Kind::OtherForm),
        _ => None,
    }
}
