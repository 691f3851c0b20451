//! Names for entries of linkage tables, as disassemblers show them: `malloc@plt` leads to `malloc` of another object.
//!
//! An entry has no symbol. It jumps to the address in a slot, which a relocation fills in for a symbol.

use std::collections::HashMap;
use std::fs::File;

use object::read::RelocationTarget;
use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};

use crate::bounded_file::BoundedFile;
use crate::linkage_sections::LINKAGE_SECTIONS;

/// More bytes of entries than any real object has.
const MAX_BYTES: u64 = 1 << 26;

/// What code of a linkage table is called that belongs to no symbol: the header, which leads to the dynamic linker.
const NAMELESS: &str = ".plt";

/// Whether a section holds entries.
pub(super) fn is_table(section: &[u8]) -> bool {
    LINKAGE_SECTIONS.iter().any(|name| name.as_bytes() == section)
}

/// What the entry at each of these addresses is called; `None` for addresses that are in no linkage table.
pub(super) fn targets(file: &File, addresses: &[u64]) -> object::Result<Vec<Option<String>>> {
    let cache = BoundedFile::new(file);
    let elf = object::File::parse(&cache)?;
    let mut names: Vec<Option<String>> = vec![None; addresses.len()];
    let mut wanted: HashMap<Slot, Vec<usize>> = HashMap::new();
    for section in LINKAGE_SECTIONS.into_iter().filter_map(|name| elf.section_by_name(name)) {
        let range = section.address()..section.address().saturating_add(section.size());
        let asked: Vec<usize> = (0..addresses.len()).filter(|&at| range.contains(&addresses[at])).collect();
        if asked.is_empty() || section.size() > MAX_BYTES {
            continue;
        }
        let table = Table { start: range.start, code: section.data()?, architecture: elf.architecture() };
        for at in asked {
            names[at] = Some(NAMELESS.into());
            if let Some(slot) = table.slot(addresses[at]) {
                wanted.entry(slot).or_default().push(at);
            }
        }
    }
    if wanted.is_empty() {
        return Ok(names);
    }
    let Some(symbols) = elf.dynamic_symbol_table() else { return Ok(names) };
    let by_number =
        elf.section_by_name(".rela.plt").and_then(|section| section.data().ok()).unwrap_or_default();
    let by_number: HashMap<u64, u64> = numbered_slots(&wanted, by_number);
    for (slot, relocation) in elf.dynamic_relocations().into_iter().flatten() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let entries = [Some(Slot::At(slot)), by_number.get(&slot).copied().map(Slot::Number)];
        let entries = entries.iter().flatten().filter_map(|slot| wanted.get(slot)).flatten();
        let mut entries = entries.peekable();
        if entries.peek().is_some()
            && let Ok(symbol) = symbols.symbol_by_index(symbol)
            && let Ok(name @ [_, ..]) = symbol.name_bytes()
        {
            let name = addr2line::demangle_auto(String::from_utf8_lossy(name), None);
            entries.for_each(|&at| names[at] = Some(format!("{name}{SUFFIX}")));
        }
    }
    Ok(names)
}

/// What marks the name of an entry.
pub(super) const SUFFIX: &str = "@plt";

/// What an entry says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    /// The address of the word that it jumps to.
    At(u64),
    /// The number of its relocation in `.rela.plt`.
    Number(u64),
}

/// The slots that the relocations with the wanted numbers fill in, each with its number.
fn numbered_slots(wanted: &HashMap<Slot, Vec<usize>>, relocations: &[u8]) -> HashMap<u64, u64> {
    // An `Elf64_Rela` begins with the address of its slot.
    const RELA: usize = 24;
    let slot = |number: u64| {
        let at = usize::try_from(number).ok()?.checked_mul(RELA)?;
        relocations.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
    };
    let numbers = wanted.keys().filter_map(|wanted| match *wanted {
        Slot::Number(number) => Some(number),
        Slot::At(_) => None,
    });
    numbers.filter_map(|number| Some((slot(number)?, number))).collect()
}

/// A section with entries.
struct Table<'a> {
    /// Address of the first.
    start: u64,
    code: &'a [u8],
    architecture: Architecture,
}

impl Table<'_> {
    /// What the entry at this address, which lies in the section, says of its target.
    fn slot(&self, address: u64) -> Option<Slot> {
        match self.architecture {
            Architecture::X86_64 => self.x86_64_slot(address),
            Architecture::Aarch64 => self.aarch64_slot(address).map(Slot::At),
            _ => None,
        }
    }

    fn x86_64_slot(&self, address: u64) -> Option<Slot> {
        // A jump of 6 bytes, or of 7 with a prefix for bounds checks, and padding: entries of half the length, where nothing is pushed.
        let is_half = matches!(
            self.code,
            [0xff, 0x25, _, _, _, _, 0x66, 0x90, ..]
                | [0xff, 0x25, _, _, _, _, 0xcc, 0xcc, ..]
                | [0xf2, 0xff, 0x25, _, _, _, _, 0x90, ..]
        );
        let len = if is_half { 8 } else { 16 };
        let begins = (address - self.start) / len * len;
        // Where lld guards against speculation, an entry that is not resolved yet is twice as long.
        let before = begins.checked_sub(len).filter(|before| self.is_guarded_at(*before));
        self.x86_64_slot_at(before.unwrap_or(begins))
    }

    /// Whether an entry that begins here calls the header to get to its target.
    fn is_guarded_at(&self, at: u64) -> bool {
        let code = usize::try_from(at).ok().and_then(|at| self.code.get(at..));
        matches!(code, Some([0x4c, 0x8b, 0x1d, _, _, _, _, 0xe8, ..]))
    }

    fn x86_64_slot_at(&self, begins: u64) -> Option<Slot> {
        let code = self.code.get(usize::try_from(begins).ok()?..)?;
        // endbr64, then a prefix for bounds checks.
        let skip = |code: &'_ [u8], prefix: &[u8]| if code.starts_with(prefix) { prefix.len() } else { 0 };
        let mut at = skip(code, &[0xf3, 0x0f, 0x1e, 0xfa]);
        at += skip(code.get(at..)?, &[0xf2]);
        let (len, [a, b, c, d]) = match *code.get(at..)? {
            // jmp *word(%rip)
            [0xff, 0x25, a, b, c, d, ..] => (6, [a, b, c, d]),
            // mov number, %r11d; jmp *word(%rip)
            [0x41, 0xbb, _, _, _, _, 0xff, 0x25, a, b, c, d, ..] => (12, [a, b, c, d]),
            // mov word(%rip), %r11
            [0x4c, 0x8b, 0x1d, a, b, c, d, ..] => (7, [a, b, c, d]),
            // push number
            [0x68, a, b, c, d, ..] => return Some(Slot::Number(u32::from_le_bytes([a, b, c, d]).into())),
            _ => return None,
        };
        let next = self.start + begins + at as u64 + len;
        Some(Slot::At(next.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into())))
    }

    /// adrp x16, page; ldr x17, [x16, #offset]; behind a landing pad or not.
    fn aarch64_slot(&self, address: u64) -> Option<u64> {
        const LANDING_PAD: u32 = 0xd503_245f;
        let (words, _) = self.code.as_chunks::<4>();
        let word = |at: usize| words.get(at).map(|bytes| u32::from_le_bytes(*bytes));
        let is_page = |word: u32| word & 0x9f00_001f == 0x9000_0010;
        let at = usize::try_from((address - self.start) / 4).ok()?;
        // The entry's own, at most three words before; the address may be that of its landing pad.
        let at = if word(at)? == LANDING_PAD { at + 1 } else { at };
        let page = (at.saturating_sub(3)..=at).rev().find(|&at| word(at).is_some_and(is_page))?;
        let (adrp, ldr) = (word(page)?, word(page + 1)?);
        if ldr & 0xffc0_03ff != 0xf940_0211 {
            return None;
        }
        let pages = i64::from(adrp >> 5 & 0x7ffff) << 2 | i64::from(adrp >> 29 & 3);
        // Sign of 21 bits.
        let pages = pages << 43 >> 43;
        let base = (self.start + 4 * page as u64) & !0xfff;
        Some(base.wrapping_add_signed(pages << 12).wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(code: &[u8], architecture: Architecture) -> Table<'_> {
        Table { start: 0x1000, code, architecture }
    }

    #[test]
    fn entries_of_x86_64_name_a_slot_or_a_number() {
        let mut code = vec![0x90; 64];
        code[16..22].copy_from_slice(&[0xff, 0x25, 0x10, 0, 0, 0]);
        code[32..42].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff]);
        code[48..57].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0x68, 5, 0, 0, 0]);
        let table = table(&code, Architecture::X86_64);
        assert_eq!(table.slot(0x1000), None);
        assert_eq!(
            (table.slot(0x1010), table.slot(0x101f)),
            (Some(Slot::At(0x1026)), Some(Slot::At(0x1026)))
        );
        assert_eq!(table.slot(0x1024), Some(Slot::At(0x102a - 16)));
        assert_eq!(table.slot(0x1035), Some(Slot::Number(5)));
    }

    #[test]
    fn short_entries_of_x86_64_are_told_apart() {
        let code = [0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90].repeat(2);
        let table = table(&code, Architecture::X86_64);
        assert_eq!(
            (table.slot(0x1000), table.slot(0x1008)),
            (Some(Slot::At(0x1006)), Some(Slot::At(0x100e)))
        );
    }

    #[test]
    fn entries_of_mold_name_a_slot() {
        // mov number, %r11d; jmp *word(%rip): with endbr64 before it, and without.
        let jump = [0x41, 0xbb, 5, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0];
        let code = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &jump, &jump, &[0xcc; 4]].concat();
        let entries = table(&code, Architecture::X86_64);
        assert_eq!(
            (entries.slot(0x100a), entries.slot(0x1010)),
            (Some(Slot::At(0x1020)), Some(Slot::At(0x102c)))
        );
        let code = [0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc].repeat(2);
        let entries = table(&code, Architecture::X86_64);
        assert_eq!(
            (entries.slot(0x1000), entries.slot(0x1008)),
            (Some(Slot::At(0x1006)), Some(Slot::At(0x100e)))
        );
    }

    #[test]
    fn entries_against_speculation_name_a_slot() {
        // mov word(%rip), %r11; call; jmp; push number; jmp
        let mut code = vec![0xcc; 96];
        for begins in [48, 80] {
            code[begins..begins + 8].copy_from_slice(&[0x4c, 0x8b, 0x1d, 0x10, 0, 0, 0, 0xe8]);
        }
        code[65..66].copy_from_slice(&[0x68]);
        let entries = table(&code[..80], Architecture::X86_64);
        assert_eq!(
            (entries.slot(0x1030), entries.slot(0x104f)),
            (Some(Slot::At(0x1047)), Some(Slot::At(0x1047)))
        );
        assert_eq!(entries.slot(0x1020), None);
        // What is resolved when the program starts: mov word(%rip), %r11; jmp
        code[87] = 0xe9;
        assert_eq!(table(&code, Architecture::X86_64).slot(0x105f), Some(Slot::At(0x1067)));
    }

    #[test]
    fn entries_of_aarch64_name_a_slot() {
        // The header; an entry with a landing pad: bti c; adrp x16, +0x20000; ldr x17, [x16, #0x18]; add; br.
        let header = [0xd503_201f_u32; 8];
        let entry = [0xd503_245f, 0x9000_0110, 0xf940_0e11, 0x9100_6210, 0xd61f_0220, 0xd503_201f];
        let code: Vec<u8> = header.iter().chain(&entry).flat_map(|word| word.to_le_bytes()).collect();
        let table = table(&code, Architecture::Aarch64);
        for at in 0..4 {
            assert_eq!(table.slot(0x1020 + 4 * at), Some(Slot::At(0x21018)), "word {at}");
        }
        assert_eq!(table.slot(0x1000), None);
    }

    #[test]
    fn slots_of_numbers_are_read_within_bounds() {
        let wanted = HashMap::from([(Slot::Number(1), vec![0]), (Slot::Number(u64::MAX), vec![1])]);
        let mut relocations = vec![0; 48];
        relocations[24] = 0x77;
        assert_eq!(numbered_slots(&wanted, &relocations), HashMap::from([(0x77, 1)]));
        assert!(numbered_slots(&wanted, &relocations[..30]).is_empty());
    }
}
