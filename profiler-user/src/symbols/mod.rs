//! Names for addresses: each distinct (object, offset) once, in one batch per object, in this process.

mod advice;
mod batches;
mod debug_files;
mod debuginfod;
mod dwarf;
mod elf;
mod guard;
mod jit;
mod kernel;
mod linkage;
mod names;
mod naming;
mod nesting;
mod rust_paths;
mod scope_index;
mod scopes;
mod symbol_table;
mod trampoline;
mod user;
mod vdso;
mod vsyscall;

pub use vdso::image as vdso_image;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use batches::{Batch, Clock};
pub use debuginfod::Debuginfod;
pub(crate) use names::without_generics;

use crate::processes::{ObjectId, Objects, Runtime, Unreadable};
use crate::profile::{Header, Line, Profile, RawFrame, Recording};
use crate::types::{ElfAddress, FileOffset, KernelAddress, Tgid};

/// What to resolve, and from where.
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// Whether inlined functions become frames of their own.
    pub inlines: bool,
    /// Whether the arguments of generics are left out of names.
    pub strip_generics: bool,
    /// Folders to look for separate debug files in, before the system's own.
    pub debug_dirs: Vec<PathBuf>,
    /// Servers to ask for debug files that are not here; `None` to ask none.
    pub debuginfod: Option<Debuginfod>,
    /// Time for all names; what is left then is named by symbol tables alone. Servers have a limit of their own.
    pub time_limit: Duration,
}

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Resolution {
    /// A function, and the functions inlined at this address, outermost first.
    Named {
        function: NamedCode,
        inlined: Vec<NamedCode>,
        /// Other names of the function, and the names of parts and copies of it that lie here.
        also: Vec<String>,
    },
    /// No name, for a reason that is counted for its object.
    Unnamed {
        why: NoName,
        /// What stands in for it: the start of its function where call-frame information tells it, else the place itself; `None` in an
        /// object that cannot be read, and in code without a file.
        start: Option<ElfAddress>,
    },
}

impl Resolution {
    /// A function of one name, with nothing inlined.
    const fn named(function: NamedCode) -> Self {
        Self::Named { function, inlined: Vec::new(), also: Vec::new() }
    }

    const fn is_named(&self) -> bool {
        matches!(self, Self::Named { .. })
    }

    /// No name, and no address that stands in for it.
    const fn unnamed(why: NoName) -> Self {
        Self::Unnamed { why, start: None }
    }
}

/// A function, at a line of its source where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedCode {
    name: String,
    line: Option<Line>,
}

/// Why there is no name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum NoName {
    /// The object has no symbols at all.
    NoSymbols,
    /// The object was stripped: only the functions that it exports have names.
    ExportsOnly,
    /// It has all its symbols, but none for this address.
    NotCovered,
    /// The object could not be read.
    Unreadable(Unreadable),
    /// The object's file could not be made sense of.
    Failed(String),
    /// The code was made at run time, and its process wrote no names.
    NoPerfMap(Runtime),
    /// It wrote names, but none for this code.
    NotInPerfMap(Runtime),
}

/// Gives a recording its names. The header is completed with what was found about stacks and names.
///
/// `progress` hears of each object how many were done before it, and how many there are.
#[must_use]
pub fn symbolize(
    recording: &Recording,
    objects: &Objects,
    header: Header,
    options: &SymbolOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Profile {
    let mut wanted: HashMap<ObjectId, Vec<FileOffset>> = HashMap::new();
    let mut made: HashMap<Tgid, Vec<jit::Place>> = HashMap::new();
    let mut kernel: Vec<KernelAddress> = Vec::new();
    for frame in recording.frames() {
        match *frame {
            RawFrame::User { object, offset } => wanted.entry(object).or_default().push(offset),
            RawFrame::Anonymous { tgid, address, time } => {
                made.entry(tgid).or_default().push((address, time));
            }
            RawFrame::Kernel(address) => kernel.push(address),
            RawFrame::Jit { .. } | RawFrame::UnknownUser => {}
        }
    }
    let mut names = naming::Names::new(objects, kernel::resolve(&mut kernel));
    let samples = batches::samples_by_object(recording);
    let batches = wanted.into_iter().map(|(object, mut offsets)| {
        offsets.sort_unstable();
        offsets.dedup();
        Batch { object, offsets, samples: samples.get(&object).copied().unwrap_or(0) }
    });
    let clock = Clock::start(options.time_limit);
    for named in batches::name_all(batches.collect(), objects, options, &clock, progress) {
        names.add(named.object, named.names.into_iter());
    }
    let jit_clock = Clock::start(jit::TIME_LIMIT);
    for (tgid, mut places) in made {
        places.sort_unstable();
        places.dedup();
        let resolved = jit::resolve(objects.jit_code(), tgid, &places, &jit_clock);
        names.add_made(tgid, places.into_iter().zip(resolved));
    }
    let asked = options.debuginfod.as_ref().and_then(Debuginfod::summary);
    let host = advice::Host::read(options.debuginfod.is_some());
    let mut profile = names.into_profile(recording, header, &host);
    profile.header.notes.extend(asked);
    if clock.is_over() {
        profile.header.notes.push(format!(
            "names took longer than {} (--symbol-time): some objects are named by their symbol tables alone, without inlined functions and lines",
            humantime::format_duration(options.time_limit)
        ));
    }
    if jit_clock.is_over() {
        profile.header.notes.push(format!(
            "names of code made at run time took longer than {}: some of it has none",
            humantime::format_duration(jit::TIME_LIMIT)
        ));
    }
    profile
}
