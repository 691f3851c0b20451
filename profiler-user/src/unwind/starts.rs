//! Where functions begin, by call-frame information alone: what is left of them in an object that was stripped of its symbols.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindSection,
};

use super::debug_frame::functions;
use super::elf::{self, Bytes, CallFrames, Segment, Source};
use crate::types::ElfAddress;

/// Bytes of entries that are worked through for one object, with those that entries share counted for each: more than any real object has.
const MAX_WORK: usize = 1 << 28;

/// The start of the function that each of these addresses is in; `None` where no call-frame information covers it, or can be read.
#[must_use]
pub fn function_starts(file: &File, addresses: &[ElfAddress]) -> Vec<Option<ElfAddress>> {
    let found = match elf::read(file) {
        Ok(frames) => starts(&frames, addresses.iter().map(|address| address.0)),
        Err(_) => BTreeMap::new(),
    };
    addresses.iter().map(|address| found.get(&address.0).copied().map(ElfAddress)).collect()
}

fn starts(frames: &CallFrames, addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
    let (open, found) = (addresses.collect(), BTreeMap::new());
    let mut search = Search { code: &frames.code, open, found, work_left: MAX_WORK };
    for source in &frames.sources {
        // What is malformed ends one source, and leaves what it has told so far.
        let _ = match source {
            Source::EhFrame { index: Some(index), frames } => search.indexed(index, frames),
            Source::EhFrame { index: None, frames } => search.entries(frames),
            Source::DebugFrame { frames, code } => search.debug_frame(frames, code),
        };
    }
    search.found
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The addresses that are looked up, and what is known of them.
struct Search<'a> {
    code: &'a [Segment],
    /// Those that no function covers so far.
    open: BTreeSet<u64>,
    /// The others, with the starts of their functions.
    found: BTreeMap<u64, u64>,
    work_left: usize,
}

impl Search<'_> {
    /// Asks the index for each address.
    fn indexed(&mut self, index: &Bytes, frames: &Bytes) -> Option<()> {
        let bases = BaseAddresses::default().set_eh_frame(frames.address).set_eh_frame_hdr(index.address);
        let header = EhFrameHdr::new(&index.data, LittleEndian).parse(&bases, 8).ok()?;
        let Some(table) = header.table() else { return self.entries(frames) };
        let section = eh_frame(frames);
        let mut next = 0;
        while let Some(&address) = self.open.range(next..).next() {
            next = address.checked_add(1)?;
            let entry = table.lookup(address, &bases).and_then(gimli::Pointer::direct);
            let offset = entry.ok().and_then(|entry| entry.checked_sub(frames.address));
            let Some(offset) = offset.and_then(|offset| usize::try_from(offset).ok()) else { continue };
            match section.fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset) {
                Ok(function) => self.function(&function, u64::MAX)?,
                // To find that out may have taken as long as reading a good part of the section.
                Err(_) => self.work(frames.data.len() / 64)?,
            }
        }
        Some(())
    }

    /// Reads one function after the other.
    fn entries(&mut self, frames: &Bytes) -> Option<()> {
        let (section, bases) = (eh_frame(frames), BaseAddresses::default().set_eh_frame(frames.address));
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next()
            && !self.open.is_empty()
        {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(function) = partial.parse(EhFrame::cie_from_offset)
            {
                self.function(&function, u64::MAX)?;
            }
        }
        Some(())
    }

    fn debug_frame(&mut self, frames: &[u8], code: &[Range<u64>]) -> Option<()> {
        if self.open.is_empty() {
            return Some(());
        }
        let mut section = DebugFrame::new(frames, LittleEndian);
        section.set_address_size(8);
        let bases = BaseAddresses::default();
        for found in functions(&section, frames, code, self.work_left).ok()? {
            if self.open.range(found.address..found.until).next().is_some() {
                let function =
                    section.fde_from_offset(&bases, found.entry, DebugFrame::cie_from_offset).ok()?;
                self.function(&function, found.until)?;
            }
        }
        Some(())
    }

    /// Notes a function, up to this address, for the addresses in it.
    fn function(&mut self, function: &FrameDescriptionEntry<Slice<'_>>, until: u64) -> Option<()> {
        self.work(function.entry_len().saturating_add(function.cie().entry_len()))?;
        let (start, end) = (function.initial_address(), function.end_address().min(until));
        // A function stays within its segment.
        let Some(segment) = self.code.iter().find(|segment| segment.offset_of(start).is_some()) else {
            return Some(());
        };
        let end = end.min(segment.address.saturating_add(segment.len));
        while let Some(&address) = self.open.range(start..end.max(start)).next() {
            self.open.remove(&address);
            self.found.insert(address, start);
        }
        Some(())
    }

    fn work(&mut self, bytes: usize) -> Option<()> {
        self.work_left = self.work_left.checked_sub(bytes)?;
        Some(())
    }
}

fn eh_frame(frames: &Bytes) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(&frames.data, LittleEndian);
    section.set_address_size(8);
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::rules::Machine;

    const FRAMES: u64 = 0x1000;
    const CODE: u64 = 0x1_0000;

    /// `.eh_frame` with these functions, and their places in it.
    fn frames(functions: &[(u64, u64)]) -> (Bytes, Vec<u64>) {
        let mut data = vec![14, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
        let mut places = Vec::new();
        for (start, len) in functions {
            places.push(data.len() as u64);
            let to_common = data.len() as u32 + 4;
            data.extend([&20_u32.to_le_bytes()[..], &to_common.to_le_bytes()].concat());
            data.extend([start.to_le_bytes(), len.to_le_bytes()].concat());
        }
        data.extend([0; 4]);
        (Bytes { address: FRAMES, data }, places)
    }

    /// The index of these functions.
    fn index(functions: &[(u64, u64)], places: &[u64]) -> Bytes {
        // Version, and encodings: 8 bytes, 4 bytes, 8 bytes.
        let mut data = vec![1, 0x04, 0x03, 0x04];
        data.extend(FRAMES.to_le_bytes());
        data.extend((functions.len() as u32).to_le_bytes());
        for ((start, _), place) in functions.iter().zip(places) {
            data.extend([start.to_le_bytes(), (FRAMES.wrapping_add(*place)).to_le_bytes()].concat());
        }
        Bytes { address: 0x100, data }
    }

    fn found(source: Source, addresses: &[u64]) -> Vec<Option<u64>> {
        let frames = CallFrames {
            machine: Machine::X86_64,
            code: vec![Segment { address: CODE, offset: 0, len: 0x1000 }],
            sources: vec![source],
            linker_code: Vec::new(),
        };
        let found = starts(&frames, addresses.iter().copied());
        addresses.iter().map(|address| found.get(address).copied()).collect()
    }

    #[test]
    fn an_address_has_the_start_of_the_function_that_covers_it() {
        let functions = [(CODE, 0x10), (CODE + 0x20, 0x20), (CODE + 0x40, 0x10)];
        let addresses = [CODE + 0x3f, CODE + 0x20, CODE, CODE + 0x10, CODE + 0x4f, CODE + 0x50, CODE - 1, 0];
        let expected =
            [Some(CODE + 0x20), Some(CODE + 0x20), Some(CODE), None, Some(CODE + 0x40), None, None, None];
        for is_indexed in [false, true] {
            let (frames, places) = frames(&functions);
            let index = is_indexed.then(|| index(&functions, &places));
            assert_eq!(found(Source::EhFrame { index, frames }, &addresses), expected, "{is_indexed}");
        }
    }

    #[test]
    fn debug_frame_tells_it_too() {
        let (Bytes { mut data, .. }, _) = frames(&[(CODE + 8, 0x10), (CODE + 0x40, 0x1000)]);
        // The common entry is known by ones there, and referred to from the start of the section.
        data[4..8].fill(0xff);
        data.truncate(data.len() - 4);
        for at in [18, 42] {
            data[at + 4..at + 8].fill(0);
        }
        let source = Source::DebugFrame { frames: data, code: vec![0..8, CODE..CODE + 0x100] };
        assert_eq!(
            found(source, &[CODE + 9, CODE, CODE + 0xff, CODE + 0x100]),
            [Some(CODE + 8), None, Some(CODE + 0x40), None]
        );
    }

    #[test]
    fn a_function_does_not_begin_in_another_segment_or_go_on_in_one() {
        let functions = [(0, 1 << 32), (CODE + 0x20, 1 << 32)];
        let (frames, _) = frames(&functions);
        let addresses = [CODE + 0x10, CODE + 0x20, CODE + 0xfff, CODE + 0x1000];
        let source = Source::EhFrame { index: None, frames };
        assert_eq!(found(source, &addresses), [None, Some(CODE + 0x20), Some(CODE + 0x20), None]);
    }

    #[test]
    fn damage_makes_no_start_behind_its_address() {
        let functions: Vec<(u64, u64)> = (0..8).map(|number| (CODE + 0x40 * number, 0x30)).collect();
        let (sound, places) = frames(&functions);
        let index = index(&functions, &places);
        let addresses: Vec<u64> = (0..64).map(|number| CODE - 0x20 + 0x10 * number).collect();
        let mut random = 7_u64;
        let mut next = |below: usize| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for round in 0..20_000 {
            let (mut data, mut by) = (sound.data.clone(), index.data.clone());
            for _ in 0..1 + next(4) {
                let damaged = if next(2) == 0 { &mut data } else { &mut by };
                let at = next(damaged.len());
                damaged[at] = [0, 1, 0x7f, 0xff, next(256) as u8][next(5)];
            }
            let source = Source::EhFrame {
                index: (next(2) == 0).then_some(Bytes { address: 0x100, data: by }),
                frames: Bytes { address: FRAMES, data },
            };
            for (start, address) in found(source, &addresses).into_iter().zip(&addresses) {
                assert!(start.is_none_or(|start| (CODE..=*address).contains(&start)), "round {round}");
            }
        }
    }
}
