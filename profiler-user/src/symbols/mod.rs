//! Names for addresses: each distinct (object, offset) once, in one batch per object, in this process.

mod elf;
mod kernel;
mod naming;
mod user;
mod vdso;

pub use vdso::image as vdso_image;

use std::collections::HashMap;

use crate::processes::{ObjectId, Objects};
use crate::profile::{Header, Profile, RawFrame, Recording};
use crate::types::{FileOffset, KernelAddress};

/// What to resolve.
#[derive(Clone, Copy, Debug)]
pub struct SymbolOptions {
    /// Whether inlined functions become frames of their own.
    pub inlines: bool,
}

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Resolution {
    /// A function, and the functions inlined at this address, outermost first.
    Named { function: String, inlined: Vec<String> },
    /// No name, for a reason that is counted for its object.
    Unnamed(NoName),
}

/// Why there is no name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum NoName {
    /// The object has no symbols at all.
    NoSymbols,
    /// It has some, but none for this address.
    NotCovered,
    /// The object could not be read.
    Unreadable(&'static str),
    /// The object's file is malformed.
    Malformed(String),
}

/// Gives a recording its names. The header is completed with what was found about stacks and names.
#[must_use]
pub fn symbolize(
    recording: &Recording,
    objects: &Objects,
    header: Header,
    options: SymbolOptions,
) -> Profile {
    let mut wanted: HashMap<ObjectId, Vec<FileOffset>> = HashMap::new();
    let mut kernel: Vec<KernelAddress> = Vec::new();
    for frame in recording.stacks().iter().flat_map(|stack| &stack.frames) {
        match *frame {
            RawFrame::User { object, offset } => wanted.entry(object).or_default().push(offset),
            RawFrame::Kernel(address) => kernel.push(address),
            RawFrame::UnknownUser => {}
        }
    }
    let mut names = naming::Names::new(objects, kernel::resolve(&mut kernel));
    for (object, mut offsets) in wanted {
        offsets.sort_unstable();
        offsets.dedup();
        let resolved = user::resolve(objects.get(object), &offsets, options);
        names.add(object, offsets.into_iter().zip(resolved));
    }
    names.into_profile(recording, header)
}
