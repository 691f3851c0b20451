//! How deep the entries of DWARF units nest. Readers recurse into inlined functions, and an untrusted file may nest them without end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use addr2line::gimli;

use super::dwarf::{Bytes, Sections};

/// Deepest nesting that is read. Compilers inline some hundred functions into each other at most.
const MAX_DEPTH: isize = 4096;

/// Units shorter than this cannot nest so deep that a reader's stack is not enough: each level takes a byte.
const HARMLESS: usize = 32 << 10;

/// The units of an object by address, and what was found about those that were asked for.
#[derive(Default)]
pub(super) struct Nesting<'a> {
    units: Vec<(Range<u64>, gimli::UnitHeader<Bytes<'a>>)>,
    too_deep: RefCell<HashMap<gimli::UnitSectionOffset, bool>>,
}

impl<'a> Nesting<'a> {
    /// Reads which addresses the units have.
    pub(super) fn read(dwarf: &Sections<'a>) -> Self {
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if header.length_including_self() < HARMLESS {
                continue;
            }
            let before = units.len();
            if let Ok(unit) = dwarf.unit(header)
                && let Ok(mut ranges) = dwarf.unit_ranges(&unit)
            {
                while let Ok(Some(range)) = ranges.next() {
                    units.push((range.begin..range.end, header));
                }
            }
            if units.len() == before {
                // Its line program may have any.
                units.push((0..u64::MAX, header));
            }
        }
        let by_offset: HashMap<_, _> =
            units.iter().filter_map(|(_, header)| Some((header.debug_info_offset()?, *header))).collect();
        units.extend(by_index(dwarf, &by_offset));
        Self { units, ..Self::default() }
    }

    /// Whether a unit that may have this address nests too deep to be read.
    pub(super) fn is_too_deep(&self, dwarf: &Sections<'a>, address: u64) -> bool {
        let mut too_deep = self.too_deep.borrow_mut();
        self.units.iter().filter(|(range, _)| range.contains(&address)).any(|(_, header)| {
            *too_deep.entry(header.offset()).or_insert_with(|| {
                dwarf.abbreviations(header).map_or(true, |abbreviations| is_too_deep(header, &abbreviations))
            })
        })
    }
}

/// The addresses that `.debug_aranges` gives to units, where it says other than they.
fn by_index<'a>(
    dwarf: &Sections<'a>,
    units: &HashMap<gimli::DebugInfoOffset, gimli::UnitHeader<Bytes<'a>>>,
) -> Vec<(Range<u64>, gimli::UnitHeader<Bytes<'a>>)> {
    let mut found = Vec::new();
    let mut sets = dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let Some(header) = units.get(&set.debug_info_offset()) else { continue };
        let mut entries = set.entries();
        while let Ok(Some(entry)) = entries.next() {
            let range = entry.range();
            found.push((range.begin..range.end, *header));
        }
    }
    found
}

/// Whether the entries of a unit nest too deep to be read.
pub(super) fn is_too_deep(
    header: &gimli::UnitHeader<Bytes<'_>>,
    abbreviations: &gimli::Abbreviations,
) -> bool {
    let Ok(mut entries) = header.entries_raw(abbreviations, None) else { return true };
    while !entries.is_empty() {
        if entries.next_depth() > MAX_DEPTH {
            return true;
        }
        let Ok(abbreviation) = entries.read_abbreviation() else { return false };
        if abbreviation
            .is_some_and(|abbreviation| entries.skip_attributes(abbreviation.attributes()).is_err())
        {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One unit with this many inlined functions, each in the one before.
    fn unit(depth: usize) -> Vec<u8> {
        // Version 4, abbreviations at 0, addresses of 8 bytes; then the unit's own entry.
        let mut body = vec![4, 0, 0, 0, 0, 0, 8, 1];
        body.extend(std::iter::repeat_n(2, depth));
        body.extend(std::iter::repeat_n(0, depth + 1));
        [(body.len() as u32).to_le_bytes().to_vec(), body].concat()
    }

    /// A compile unit and an inlined function, both with children and without attributes.
    const ABBREVIATIONS: [u8; 11] = [1, 0x11, 1, 0, 0, 2, 0x1d, 1, 0, 0, 0];

    fn is_too_deep_at(info: &[u8], address: u64) -> bool {
        let section = |id: gimli::SectionId| -> Result<Bytes<'_>, gimli::Error> {
            let data = match id {
                gimli::SectionId::DebugInfo => info,
                gimli::SectionId::DebugAbbrev => &ABBREVIATIONS[..],
                _ => &[],
            };
            Ok(Bytes::new(data, gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).unwrap();
        Nesting::read(&dwarf).is_too_deep(&dwarf, address)
    }

    #[test]
    fn endless_nesting_is_found_and_usual_nesting_is_not() {
        assert!(is_too_deep_at(&unit(300_000), 0x1000));
        assert!(!is_too_deep_at(&unit(1000), 0x1000));
        // The second unit counts too.
        assert!(is_too_deep_at(&[unit(10), unit(100_000)].concat(), 0x1000));
        assert!(!is_too_deep_at(b"\xff\xff\xff", 0x1000));
    }
}
