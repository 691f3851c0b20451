//! The functions that `.debug_frame` describes, by address. The section has no index, its functions come as the files that were linked, and
//! those that the linker dropped are still in it.

use std::ops::Range;

use gimli::{
    BaseAddresses, DebugFrame, DebugFrameOffset, EndianSlice, Error, LittleEndian, UnwindSection as _,
};

use super::CompileError;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its first address.
    pub address: u64,
    /// Where the next one begins, or its section ends. What it says beyond is not believed.
    pub until: u64,
    /// Its entry.
    pub entry: DebugFrameOffset<usize>,
}

/// The functions in these sections with code, in the order of their addresses.
///
/// A linker gives those that it dropped the address 0, or one outside of all code. What is described twice, as a function that
/// several files bring along, counts as its first entry says: a linker keeps the first.
///
/// # Errors
///
/// When the entries take more than `work` bytes to read, with those that they share counted for each.
pub(super) fn functions(
    section: &DebugFrame<EndianSlice<'_, LittleEndian>>,
    data: &[u8],
    code: &[Range<u64>],
    mut work: usize,
) -> Result<Vec<Function>, CompileError> {
    let bases = BaseAddresses::default();
    let (mut common, mut own) = (Vec::new(), Vec::new());
    for entry in entries(data).map(DebugFrameOffset) {
        match section.partial_fde_from_offset(&bases, entry) {
            Ok(_) => own.push(entry),
            Err(Error::NotCiePointer(_)) if section.cie_from_offset(&bases, entry).is_ok() => {
                common.push(entry.0);
            }
            Err(_) => {}
        }
    }
    let mut functions = Vec::new();
    for entry in own {
        let function = section.fde_from_offset(&bases, entry, |section, bases, offset| {
            // To read a common entry that is malformed may take long, so it is done once.
            match common.binary_search(&offset.0) {
                Ok(_) => section.cie_from_offset(bases, offset),
                Err(_) => Err(Error::NotCieId(offset.0 as u64)),
            }
        });
        let Ok(function) = function else { continue };
        let bytes = function.entry_len().saturating_add(function.cie().entry_len());
        work = work.checked_sub(bytes).ok_or(CompileError::TooLarge)?;
        let address = function.initial_address();
        if address != 0
            && let Some(code) = section_at(code, address)
        {
            functions.push(Function { address, until: code.end, entry });
        }
    }
    // Keeps the order of entries with the same address.
    functions.sort_by_key(|function| function.address);
    functions.dedup_by_key(|function| function.address);
    for at in 1..functions.len() {
        functions[at - 1].until = functions[at - 1].until.min(functions[at].address);
    }
    Ok(functions)
}

/// Where each entry begins. A malformed length ends it: the next entry cannot be found.
fn entries(data: &[u8]) -> impl Iterator<Item = usize> {
    let mut next = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let begin = next;
            let short = u32::from_le_bytes(*data.get(begin..)?.first_chunk()?);
            // DWARF 5 §7.4: the length of a 64-bit entry follows 4 bytes of ones.
            let (header, len) = match short {
                u32::MAX => (12, u64::from_le_bytes(*data.get(begin + 4..)?.first_chunk()?)),
                _ => (4, u64::from(short)),
            };
            next = begin.checked_add(header)?.checked_add(usize::try_from(len).ok()?)?;
            // Some assemblers write a length of 0, which stands for nothing.
            if len > 0 {
                return (next <= data.len()).then_some(begin);
            }
        }
    })
}

fn section_at(code: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let after = code.partition_point(|section| section.start <= address);
    code.get(after.checked_sub(1)?).filter(|section| address < section.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of the 32-bit form with this content behind its length.
    fn entry(content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&(content.len() as u32).to_le_bytes()[..], &content].concat()
    }

    /// As [`entry`], in the 64-bit form.
    fn long_entry(content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&[0xff; 4][..], &(content.len() as u64).to_le_bytes(), &content].concat()
    }

    /// What follows the version in a common entry of x86_64: no augmentation, alignment of code 1 and of data −8, return address 16.
    const COMMON: [u8; 4] = [0, 1, 0x78, 16];
    /// The same since version 4, with the sizes of addresses and of segment selectors.
    const COMMON_4: [u8; 6] = [0, 8, 0, 1, 0x78, 16];

    fn common(version: u8) -> Vec<u8> {
        let rest = if version == 4 { &COMMON_4[..] } else { &COMMON };
        entry(&[&[0xff; 4], &[version], rest])
    }

    fn function(common: u32, address: u64, len: u64) -> Vec<u8> {
        entry(&[&common.to_le_bytes(), &address.to_le_bytes(), &len.to_le_bytes()])
    }

    const TEXT: Range<u64> = 0x1000..0x2000;
    const TEXT_UNLIKELY: Range<u64> = 0x2000..0x2100;

    fn found(data: &[u8]) -> Result<Vec<Function>, CompileError> {
        let mut section = DebugFrame::new(data, LittleEndian);
        section.set_address_size(8);
        functions(&section, data, &[TEXT, TEXT_UNLIKELY], 1000)
    }

    fn addresses(data: &[u8]) -> Vec<(u64, u64)> {
        found(data).unwrap().iter().map(|function| (function.address, function.until)).collect()
    }

    #[test]
    fn functions_come_by_address_and_each_ends_where_the_next_begins() {
        let cold = function(0, 0x2000, 0x20);
        let hot = function(0, 0x1800, 0x20);
        let long = function(0, 0x1000, 0x1000);
        let data = [common(1), cold, hot, long].concat();
        assert_eq!(addresses(&data), [(0x1000, 0x1800), (0x1800, 0x2000), (0x2000, 0x2100)]);
    }

    #[test]
    fn functions_that_the_linker_dropped_are_left_out() {
        let outside = [0, 1, 0x40, 0xfff, 0x2100, u64::MAX, u64::MAX - 1];
        let dropped = outside.map(|address| function(0, address, 0x1800)).concat();
        let data = [common(3), dropped, function(0, 0x1010, 0x20)].concat();
        assert_eq!(addresses(&data), [(0x1010, 0x2000)]);
    }

    #[test]
    fn code_that_begins_at_address_0_has_no_function_there() {
        let data = [common(1), function(0, 0, 0x20), function(0, 0x20, 0x20)].concat();
        let mut section = DebugFrame::new(&data, LittleEndian);
        section.set_address_size(8);
        let functions =
            functions(&section, &data, &std::array::from_fn::<_, 1, _>(|_| 0..0x1000), 1000).unwrap();
        assert_eq!(functions.iter().map(|function| function.address).collect::<Vec<_>>(), [0x20]);
    }

    #[test]
    fn of_entries_for_one_function_the_first_counts() {
        let data = [common(1), function(0, 0x1000, 0x20), function(0, 0x1000, 0x40)].concat();
        let functions = found(&data).unwrap();
        assert_eq!(functions.len(), 1);
        assert_eq!(functions[0].entry.0, common(1).len());
    }

    #[test]
    fn every_version_and_the_64_bit_form_are_read() {
        for version in [1, 3, 4] {
            let data = [common(version), function(0, 0x1000, 0x20)].concat();
            assert_eq!(addresses(&data), [(0x1000, 0x2000)], "version {version}");
        }
        let common = long_entry(&[&[0xff; 8], &[1], &COMMON]);
        let address = 0x1000_u64.to_le_bytes();
        let function = long_entry(&[&0_u64.to_le_bytes(), &address, &0x20_u64.to_le_bytes()]);
        assert_eq!(addresses(&[common, function].concat()), [(0x1000, 0x2000)]);
    }

    #[test]
    fn addresses_have_the_size_that_their_common_entry_says() {
        let common = entry(&[&[0xff; 4], &[4, 0, 4, 0, 1, 0x78, 16]]);
        let function = entry(&[&[0; 4], &0x1000_u32.to_le_bytes(), &0x20_u32.to_le_bytes()]);
        assert_eq!(addresses(&[common, function].concat()), [(0x1000, 0x2000)]);
    }

    #[test]
    fn what_is_not_known_costs_only_itself() {
        // Another version, a segment selector, an augmentation; a length of 0; a common entry that comes last; one that is none.
        let unknown = [
            common(9),
            entry(&[&[0xff; 4], &[4, 0, 8, 2, 1, 0x78, 16]]),
            entry(&[&[0xff; 4], &[1], b"weird\0", &COMMON[1..]]),
        ];
        let mut data = Vec::new();
        for common in &unknown {
            let at = data.len() as u32;
            data.extend(common.iter().chain(&function(at, 0x1000, 0x20)));
        }
        data.extend([0; 4]);
        data.extend(function(1, 0x1000, 0x20));
        let sound = function(0, 0x1500, 0x20).len() + data.len();
        data.extend(function(sound as u32, 0x1500, 0x20));
        data.extend(common(1));
        assert_eq!(addresses(&data), [(0x1500, 0x2000)]);
    }

    #[test]
    fn what_breaks_off_ends_the_section() {
        let sound = [common(1), function(0, 0x1000, 0x20)].concat();
        let next = function(0, 0x1100, 0x20);
        for len in 0..next.len() {
            assert_eq!(addresses(&[&sound, &next[..len]].concat()), [(0x1000, 0x2000)], "{len} bytes");
        }
        for length in [&[0xff; 12][..], &[0xf0, 0xff, 0xff, 0xff]] {
            assert_eq!(addresses(&[&sound, length, &next].concat()), [(0x1000, 0x2000)], "{length:x?}");
        }
    }

    #[test]
    fn a_long_common_entry_that_all_share_is_refused() {
        let mut data = entry(&[&[0xff; 4], &[1], &COMMON, &[0; 500]]);
        data.extend(function(0, 0x1000, 0x20).repeat(2));
        assert!(matches!(found(&data), Err(CompileError::TooLarge)));
    }

    #[test]
    fn damage_makes_no_function_outside_of_code() {
        let mut sound = Vec::new();
        for version in [1, 3, 4] {
            let at = sound.len() as u32;
            sound.extend(common(version));
            (0..4).for_each(|number| sound.extend(function(at, 0x1000 + 0x40 * number, 0x20)));
        }
        let mut random = 7_u64;
        let mut next = |below: usize| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for round in 0..20_000 {
            let mut data = sound.clone();
            for _ in 0..1 + next(4) {
                let at = next(data.len());
                data[at] = [0, 1, 0x7f, 0xff, next(256) as u8][next(5)];
            }
            let Ok(functions) = found(&data) else { continue };
            assert!(functions.is_sorted_by(|a, b| a.until <= b.address), "round {round}: {functions:x?}");
            for Function { address, until, entry } in functions {
                let section = [TEXT, TEXT_UNLIKELY].into_iter().find(|section| section.contains(&address));
                assert!(address < until && until <= section.unwrap().end, "round {round}: {address:#x}");
                assert!(entry.0 < data.len(), "round {round}: {entry:?}");
            }
        }
    }
}
