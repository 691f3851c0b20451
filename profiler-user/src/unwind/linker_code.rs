//! Code that linkers and C libraries put into every object and may describe by no call-frame information: PLTs (GNU ld and gold describe those of
//! x86_64; lld, mold and aarch64's linkers none), `_init` and `_fini`. It is recognised by its instructions.

use profiler_common::unwind::row::{Cfa, Rule, Saved};

use super::plt;
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
    /// Its bytes.
    pub code: Vec<u8>,
}

/// What a section of such code holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A PLT: jumps to functions of other objects.
    Plt,
    /// `_init` or `_fini`: pieces of all objects that were linked, between a prologue and an epilogue of the C library's.
    Function,
}

/// The sections by name.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, Kind)> {
    let plts = LINKAGE_SECTIONS.into_iter().map(|name| (name, Kind::Plt));
    plts.chain([(".init", Kind::Function), (".fini", Kind::Function)])
}

/// Rules, each from a byte of the section on.
pub(super) type Rules = Vec<(u64, Rule)>;

impl LinkerCode {
    /// The address where it ends.
    pub(super) fn end(&self) -> u64 {
        self.address.saturating_add(self.code.len() as u64)
    }

    /// Whether this address lies in it.
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.address..self.end()).contains(&address)
    }

    /// The rules that hold in it, in order; none where its instructions are not the known ones.
    pub(super) fn rules(&self, machine: Machine) -> Rules {
        match (machine, self.kind) {
            (Machine::X86_64, Kind::Plt) => plt::x86_64(&self.code),
            (Machine::X86_64, Kind::Function) => x86_64_function(&self.code).unwrap_or_default(),
            (Machine::Aarch64, Kind::Plt) => plt::aarch64(&self.code),
            (Machine::Aarch64, Kind::Function) => aarch64_function(&self.code).unwrap_or_default(),
        }
    }
}

/// glibc's `sysdeps/x86_64/crti.S` and `crtn.S`.
fn x86_64_function(code: &[u8]) -> Option<Rules> {
    let prologue = match *code {
        // endbr64; sub $8, %rsp.
        [0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, ..] => 8,
        [0x48, 0x83, 0xec, 8, ..] => 4,
        _ => return None,
    };
    // add $8, %rsp; ret.
    let body = code.get(prologue..)?.strip_suffix(&[0x48, 0x83, 0xc4, 8, 0xc3])?;
    let ret = prologue + body.len() + 4;
    Some(vec![(0, x86_64_at(8)), (prologue as u64, x86_64_at(16)), (ret as u64, x86_64_at(8))])
}

/// glibc's `sysdeps/aarch64/crti.S` and `crtn.S`.
fn aarch64_function(code: &[u8]) -> Option<Rules> {
    // The first instruction, or the second behind a landing pad or a signature.
    let (words, _) = code.as_chunks::<4>();
    let push = words.iter().take(2).position(|word| u32::from_le_bytes(*word) == STP_X29_X30)?;
    let prologue = 4 * (push + 1);
    // ldp x29, x30, [sp], #16; ret.
    let body = code.get(prologue..)?.strip_suffix(&[0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6])?;
    let ret = prologue + body.len() + 4;
    let pushed = aarch64_pushed(Saved::BelowCfa(16));
    Some(vec![(0, AARCH64_LEAF), (prologue as u64, pushed), (ret as u64, AARCH64_LEAF)])
}

/// stp x29, x30, [sp, #-16]!
const STP_X29_X30: u32 = 0xa9bf_7bfd;

/// A function, or an entry of a PLT, that has pushed all but 8 of these bytes: those are its return address.
pub(super) const fn x86_64_at(offset: u32) -> Rule {
    Rule::new(Cfa::Sp(offset), Saved::InRegister, Saved::BelowCfa(8))
}

/// Nothing is pushed, and the return address is in the link register.
pub(super) const AARCH64_LEAF: Rule = Rule::new(Cfa::Sp(0), Saved::InRegister, Saved::InRegister);

/// Two registers are pushed, the second of them the link register.
pub(super) const fn aarch64_pushed(fp: Saved) -> Rule {
    Rule::new(Cfa::Sp(16), fp, Saved::BelowCfa(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(code: &[u8], machine: Machine) -> Rules {
        LinkerCode { kind: Kind::Function, address: 0x1000, offset: 0, code: code.to_vec() }.rules(machine)
    }

    #[test]
    fn unknown_instructions_have_no_rules() {
        assert!(function(&[0x55, 0xc3], Machine::X86_64).is_empty());
        assert!(function(&[], Machine::Aarch64).is_empty());
        // The prologue and the epilogue share no byte.
        assert!(function(&[0x48, 0x83, 0xec, 8, 0x83, 0xc4, 8, 0xc3], Machine::X86_64).is_empty());
    }

    #[test]
    fn the_frame_of_an_x86_64_function_is_there_between_prologue_and_epilogue() {
        let fini = [0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, 0xc3];
        let expected = [(0, x86_64_at(8)), (4, x86_64_at(16)), (8, x86_64_at(8))];
        assert_eq!(function(&fini, Machine::X86_64), expected);
        let tracked = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &fini].concat();
        let expected = [(0, x86_64_at(8)), (8, x86_64_at(16)), (12, x86_64_at(8))];
        assert_eq!(function(&tracked, Machine::X86_64), expected);
    }

    #[test]
    fn an_aarch64_function_returns_by_the_link_register_until_it_is_pushed() {
        // bti c; stp x29, x30, [sp, #-16]!; mov x29, sp; nop; ldp x29, x30, [sp], #16; ret.
        let init = [0xd503_245f, STP_X29_X30, 0x9100_03fd, 0xd503_201f, 0xa8c1_7bfd, 0xd65f_03c0];
        let init: Vec<u8> = init.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let expected = [(0, AARCH64_LEAF), (8, aarch64_pushed(Saved::BelowCfa(16))), (20, AARCH64_LEAF)];
        assert_eq!(function(&init, Machine::Aarch64), expected);
    }
}
