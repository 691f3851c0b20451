//! Code that linkers and C libraries put into every object and may describe by no call-frame information: linkage tables (GNU ld describes
//! those of x86_64, lld and aarch64's linkers none), `_init` and `_fini`. It is recognised by its instructions.

use profiler_common::unwind::row::{Cfa, Rule, Saved};

use super::rules::Machine;
use crate::linkage_sections::LINKAGE_SECTIONS;

/// A section of such code.
#[derive(Clone, Debug)]
pub(super) struct LinkerCode {
    pub kind: Kind,
    /// Address of its first byte.
    pub address: u64,
    /// Place of that in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Its first bytes, up to [`HEAD`].
    pub head: Vec<u8>,
    /// Its last bytes, up to [`TAIL`].
    pub tail: Vec<u8>,
}

/// What a section of such code holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Jumps to functions of other objects.
    LinkageTable,
    /// `_init` or `_fini`: pieces of all objects that were linked, between a prologue and an epilogue of the C library's.
    Function,
}

/// Bytes of [`LinkerCode::head`]: the header of a linkage table and the beginning of its first entry.
pub(super) const HEAD: u64 = 48;

/// Bytes of [`LinkerCode::tail`].
pub(super) const TAIL: u64 = 8;

/// The sections by name.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, Kind)> {
    let tables = LINKAGE_SECTIONS.into_iter().map(|name| (name, Kind::LinkageTable));
    tables.chain([(".init", Kind::Function), (".fini", Kind::Function)])
}

/// Rules, each from a byte of the section on.
type Rules = Vec<(u64, Rule)>;

impl LinkerCode {
    /// Whether this address lies in it.
    pub(super) fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|at| at < self.len)
    }

    /// The rules that hold in it; none where its instructions are not the known ones.
    pub(super) fn rules(&self, machine: Machine) -> Rules {
        let rules = match (machine, self.kind) {
            (Machine::X86_64, Kind::LinkageTable) => self.x86_64_linkage_table(),
            (Machine::X86_64, Kind::Function) => self.x86_64_function(),
            (Machine::Aarch64, Kind::LinkageTable) => Some(self.aarch64_linkage_table()),
            (Machine::Aarch64, Kind::Function) => self.aarch64_function(),
        };
        rules.filter(|rules| rules.iter().all(|(at, _)| *at < self.len)).unwrap_or_default()
    }

    /// psABI x86-64, figure 5.2, and with indirect branch tracking, figure 13.3. The caller has pushed the return address; an entry may
    /// push its number; then the header pushes a word and jumps into the dynamic linker.
    fn x86_64_linkage_table(&self) -> Option<Rules> {
        let header: Rules = match self.head.get(..2)? {
            // push word(%rip); the rest of 16 bytes.
            [0xff, 0x35] => vec![(0, x86_64_at(16)), (6, x86_64_at(24))],
            _ => Vec::new(),
        };
        let first = if header.is_empty() { 0 } else { 16 };
        let entry = match self.head.get(first..)? {
            // jmp *word(%rip); push number; jmp header.
            [0xff, 0x25, _, _, _, _, 0x68, ..] => x86_64_numbered(11),
            // endbr64; push number; jmp header.
            [0xf3, 0x0f, 0x1e, 0xfa, 0x68, ..] => x86_64_numbered(9),
            // jmp *word(%rip), with endbr64 before it or not, and a prefix for bounds checks or not.
            [0xff, 0x25, ..]
            | [0xf2, 0xff, 0x25, ..]
            | [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, ..]
            | [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, ..] => x86_64_at(8),
            _ => return None,
        };
        // The place in an entry is that in 16 bytes.
        let is_aligned = self.address.is_multiple_of(16) || matches!(entry.cfa, Cfa::Sp(_));
        is_aligned.then(|| header.into_iter().chain([(first as u64, entry)]).collect())
    }

    /// glibc's `sysdeps/x86_64/crti.S` and `crtn.S`.
    fn x86_64_function(&self) -> Option<Rules> {
        let prologue = match *self.head {
            // endbr64; sub $8, %rsp.
            [0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, ..] => 8,
            [0x48, 0x83, 0xec, 8, ..] => 4,
            _ => return None,
        };
        // add $8, %rsp; ret.
        let is_known = self.tail.ends_with(&[0x48, 0x83, 0xc4, 8, 0xc3]);
        is_known.then(|| vec![(0, x86_64_at(8)), (prologue, x86_64_at(16)), (self.len - 1, x86_64_at(8))])
    }

    /// AAELF64, "Procedure Linkage Table": entries use scratch registers alone, the header pushes two.
    fn aarch64_linkage_table(&self) -> Rules {
        match self.position(STP_X16_X30) {
            Some(push) => {
                vec![(0, AARCH64_LEAF), (push + 4, aarch64_pushed(Saved::InRegister)), (32, AARCH64_LEAF)]
            }
            None => vec![(0, AARCH64_LEAF)],
        }
    }

    /// glibc's `sysdeps/aarch64/crti.S` and `crtn.S`.
    fn aarch64_function(&self) -> Option<Rules> {
        let push = self.position(STP_X29_X30)?;
        // ldp x29, x30, [sp], #16; ret.
        let is_known = self.tail == [0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6];
        let pushed = aarch64_pushed(Saved::BelowCfa(16));
        is_known.then(|| vec![(0, AARCH64_LEAF), (push + 4, pushed), (self.len - 4, AARCH64_LEAF)])
    }

    /// Where an instruction is, if it is the first, or the second behind a landing pad or a signature.
    fn position(&self, instruction: u32) -> Option<u64> {
        let (instructions, _) = self.head.as_chunks::<4>();
        let at = instructions.iter().take(2).position(|bytes| u32::from_le_bytes(*bytes) == instruction)?;
        Some(4 * at as u64)
    }
}

/// stp x16, x30, [sp, #-16]!
const STP_X16_X30: u32 = 0xa9bf_7bf0;

/// stp x29, x30, [sp, #-16]!
const STP_X29_X30: u32 = 0xa9bf_7bfd;

const fn x86_64_at(offset: u32) -> Rule {
    Rule::new(Cfa::Sp(offset), Saved::InRegister, Saved::BelowCfa(8))
}

/// An entry that has pushed its number from this byte on.
const fn x86_64_numbered(byte: u32) -> Rule {
    Rule::new(Cfa::Plt(byte), Saved::InRegister, Saved::BelowCfa(8))
}

const AARCH64_LEAF: Rule = Rule::new(Cfa::Sp(0), Saved::InRegister, Saved::InRegister);

const fn aarch64_pushed(fp: Saved) -> Rule {
    Rule::new(Cfa::Sp(16), fp, Saved::BelowCfa(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(kind: Kind, address: u64, bytes: &[u8]) -> LinkerCode {
        LinkerCode {
            kind,
            address,
            offset: 0,
            len: bytes.len() as u64,
            head: bytes[..bytes.len().min(HEAD as usize)].to_vec(),
            tail: bytes[bytes.len() - bytes.len().min(TAIL as usize)..].to_vec(),
        }
    }

    fn cfas(code: &LinkerCode, machine: Machine) -> Vec<(u64, Cfa)> {
        code.rules(machine).iter().map(|(at, rule)| (*at, rule.cfa)).collect()
    }

    /// Pads each instruction group to 16 bytes.
    fn entries(entries: &[&[u8]]) -> Vec<u8> {
        entries.iter().flat_map(|entry| [*entry, &[0x90; 16][entry.len()..]].concat()).collect()
    }

    const HEADER: &[u8] = &[0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4];
    const LAZY: &[u8] = &[0xff, 0x25, 1, 2, 3, 4, 0x68, 0, 0, 0, 0, 0xe9, 1, 2, 3, 4];

    #[test]
    fn an_x86_64_linkage_table_has_a_header_and_entries() {
        let table = code(Kind::LinkageTable, 0x1000, &entries(&[HEADER, LAZY, LAZY]));
        let expected = [(0, Cfa::Sp(16)), (6, Cfa::Sp(24)), (16, Cfa::Plt(11))];
        assert_eq!(cfas(&table, Machine::X86_64), expected);
        let tracked = code(
            Kind::LinkageTable,
            0x1000,
            &entries(&[HEADER, &[0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xe9, 1, 2, 3, 4]]),
        );
        assert_eq!(cfas(&tracked, Machine::X86_64)[2], (16, Cfa::Plt(9)));
    }

    #[test]
    fn entries_that_only_jump_push_nothing() {
        for jump in
            [&[0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90][..], &[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2, 3, 4]]
        {
            let table = code(Kind::LinkageTable, 0x1008, jump);
            assert_eq!(cfas(&table, Machine::X86_64), [(0, Cfa::Sp(8))]);
        }
    }

    #[test]
    fn unknown_instructions_have_no_rules() {
        let retpoline =
            [0xff, 0x35, 1, 2, 3, 4, 0x4c, 0x8b, 0x1d, 1, 2, 3, 4, 0xe8, 0x0e, 0, 0, 0, 0xf3, 0x90];
        assert!(code(Kind::LinkageTable, 0x1000, &retpoline).rules(Machine::X86_64).is_empty());
        assert!(code(Kind::LinkageTable, 0x1000, &HEADER[..8]).rules(Machine::X86_64).is_empty());
        assert!(
            code(Kind::LinkageTable, 0x1008, &entries(&[HEADER, LAZY])).rules(Machine::X86_64).is_empty()
        );
        assert!(code(Kind::Function, 0x1000, &[0x55, 0xc3]).rules(Machine::X86_64).is_empty());
        assert!(code(Kind::Function, 0x1000, &[]).rules(Machine::Aarch64).is_empty());
    }

    #[test]
    fn the_frame_of_an_x86_64_function_is_there_between_prologue_and_epilogue() {
        let fini = [0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, 0xc3];
        let expected = [(0, Cfa::Sp(8)), (4, Cfa::Sp(16)), (8, Cfa::Sp(8))];
        assert_eq!(cfas(&code(Kind::Function, 0x1000, &fini), Machine::X86_64), expected);
        let tracked = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &fini].concat();
        let expected = [(0, Cfa::Sp(8)), (8, Cfa::Sp(16)), (12, Cfa::Sp(8))];
        assert_eq!(cfas(&code(Kind::Function, 0x1000, &tracked), Machine::X86_64), expected);
    }

    #[test]
    fn aarch64_code_returns_by_the_link_register_until_it_is_pushed() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let nop = 0xd503_201f;
        let table = words(&[&[STP_X16_X30][..], &[nop; 11]].concat());
        let table = code(Kind::LinkageTable, 0x1000, &table).rules(Machine::Aarch64);
        let pushed = aarch64_pushed(Saved::InRegister);
        assert_eq!(table, [(0, AARCH64_LEAF), (4, pushed), (32, AARCH64_LEAF)]);
        // hint (bti c), then the push.
        let init = words(&[0xd503_245f, STP_X29_X30, 0x9100_03fd, nop, 0xa8c1_7bfd, 0xd65f_03c0]);
        let init = code(Kind::Function, 0x1000, &init).rules(Machine::Aarch64);
        assert_eq!(init, [(0, AARCH64_LEAF), (8, aarch64_pushed(Saved::BelowCfa(16))), (20, AARCH64_LEAF)]);
    }
}
