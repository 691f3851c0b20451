//! One step by a rule.

use super::row::{Cfa, Rule, Saved};
use super::{Registers, UserMemory, user_code_address};
use crate::stack::StackEnd;

/// Where a signal frame keeps the registers, as offsets from the stack pointer in the frame of the trampoline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalFrame {
    /// Of the program counter.
    pub pc: u64,
    /// Of the stack pointer.
    pub sp: u64,
    /// Of the frame pointer.
    pub fp: u64,
    /// Of the link register; 0 where there is none.
    pub lr: u64,
}

impl SignalFrame {
    /// x86_64: `struct rt_sigframe` without its return address, `uc_mcontext` at 40 (`arch/x86/include/uapi/asm/sigcontext.h`).
    pub const X86_64: Self = Self { pc: 40 + 16 * 8, sp: 40 + 15 * 8, fp: 40 + 10 * 8, lr: 0 };

    /// aarch64: `struct rt_sigframe`, `regs` of `uc_mcontext` at 312 (`arch/arm64/include/uapi/asm/sigcontext.h`).
    pub const AARCH64: Self = Self { pc: 312 + 32 * 8, sp: 312 + 31 * 8, fp: 312 + 29 * 8, lr: 312 + 30 * 8 };
}

/// The caller of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its registers.
    pub registers: Registers,
    /// Whether its address is that of the next instruction, and not a return address: it was interrupted by a signal.
    pub interrupted: bool,
}

/// The caller of the frame with these registers by this rule, or why there is none.
///
/// `address_mask` clears the bits of a return address that are no part of it (pointer authentication codes).
#[inline(always)]
pub fn caller(
    rule: Rule,
    registers: &Registers,
    signal_frame: &SignalFrame,
    address_mask: u64,
    memory: &mut impl UserMemory,
) -> Result<Caller, StackEnd> {
    let cfa = match rule.cfa {
        Cfa::Root => return Err(StackEnd::Root),
        Cfa::Nothing | Cfa::Unsupported => return Err(StackEnd::NoRule),
        Cfa::Signal => return interrupted(registers, signal_frame, memory),
        Cfa::Sp(offset) => registers.sp.wrapping_add(u64::from(offset)),
        Cfa::Fp(offset) => registers.fp.wrapping_add(u64::from(offset)),
        Cfa::AtFp(offset) => match memory.read(registers.fp.wrapping_sub(u64::from(offset))) {
            Some(cfa) => cfa,
            None => return Err(StackEnd::Unreadable),
        },
        Cfa::Plt(byte) => {
            registers.sp.wrapping_add(if registers.pc & 15 >= u64::from(byte) { 16 } else { 8 })
        }
    };
    let (fp, return_address) = match (rule.fp, rule.ra) {
        // The two are neighbours nearly always: one read.
        (Saved::BelowCfa(fp), Saved::BelowCfa(ra)) if fp == ra + 8 => {
            match memory.read_pair(cfa.wrapping_sub(u64::from(fp))) {
                Some([fp, ra]) => (fp, ra),
                None => return Err(StackEnd::Unreadable),
            }
        }
        (fp, ra) => {
            let Some(return_address) = restore(ra, cfa, registers.lr, registers.fp, memory) else {
                return Err(StackEnd::Unreadable);
            };
            let Some(fp) = restore(fp, cfa, registers.fp, registers.fp, memory) else {
                return Err(StackEnd::Unreadable);
            };
            (fp, return_address)
        }
    };
    if return_address == 0 {
        return Err(StackEnd::ChainEnd);
    }
    let Some(pc) = user_code_address(return_address, address_mask) else {
        return Err(StackEnd::BadReturnAddress);
    };
    // A frame that is its own caller would never end. The stack pointer may fall: programs switch stacks.
    if pc == registers.pc && cfa == registers.sp {
        return Err(StackEnd::BadReturnAddress);
    }
    Ok(Caller { registers: Registers { pc, sp: cfa, fp, lr: 0 }, interrupted: false })
}

#[inline(always)]
fn restore(saved: Saved, cfa: u64, in_register: u64, fp: u64, memory: &mut impl UserMemory) -> Option<u64> {
    match saved {
        Saved::InRegister => Some(in_register),
        Saved::BelowCfa(offset) => memory.read(cfa.wrapping_sub(u64::from(offset))),
        Saved::AtFp => memory.read(fp),
    }
}

#[inline(always)]
fn interrupted(
    registers: &Registers,
    frame: &SignalFrame,
    memory: &mut impl UserMemory,
) -> Result<Caller, StackEnd> {
    let mut read = |offset| memory.read(registers.sp.wrapping_add(offset));
    let (Some(pc), Some(sp), Some(fp)) = (read(frame.pc), read(frame.sp), read(frame.fp)) else {
        return Err(StackEnd::Unreadable);
    };
    let lr = if frame.lr == 0 { 0 } else { read(frame.lr).unwrap_or(0) };
    match user_code_address(pc, u64::MAX) {
        Some(pc) => Ok(Caller { registers: Registers { pc, sp, fp, lr }, interrupted: true }),
        None => Err(StackEnd::BadReturnAddress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffd_0000_0000;

    /// Words from `BASE` on.
    struct Stack<'a>(&'a [u64]);

    impl UserMemory for Stack<'_> {
        fn read(&mut self, address: u64) -> Option<u64> {
            self.0.get(usize::try_from(address.checked_sub(BASE)? / 8).ok()?).copied()
        }

        fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
            Some([self.read(address)?, self.read(address + 8)?])
        }
    }

    fn step(rule: Rule, registers: Registers, stack: &[u64]) -> Result<Registers, StackEnd> {
        caller(rule, &registers, &SignalFrame::X86_64, u64::MAX, &mut Stack(stack))
            .map(|caller| caller.registers)
    }

    fn at(pc: u64, sp: u64, fp: u64) -> Registers {
        Registers { pc, sp, fp, lr: 0 }
    }

    const RA: Saved = Saved::BelowCfa(8);

    #[test]
    fn a_function_without_frame_keeps_the_frame_pointer() {
        let rule = Rule { cfa: Cfa::Sp(8), fp: Saved::InRegister, ra: RA };
        assert_eq!(step(rule, at(0x5000, BASE, 77), &[0x6000]), Ok(at(0x6000, BASE + 8, 77)));
    }

    #[test]
    fn a_saved_frame_pointer_is_restored() {
        let rule = Rule { cfa: Cfa::Fp(16), fp: Saved::BelowCfa(16), ra: RA };
        assert_eq!(step(rule, at(0x5000, BASE, BASE + 8), &[0, 99, 0x6000]), Ok(at(0x6000, BASE + 24, 99)));
        let apart = Rule { cfa: Cfa::Sp(32), fp: Saved::BelowCfa(24), ra: RA };
        assert_eq!(step(apart, at(0x5000, BASE, 0), &[0, 99, 0, 0x6000]), Ok(at(0x6000, BASE + 32, 99)));
    }

    #[test]
    fn an_aligned_stack_is_found_through_the_frame_pointer() {
        let rule = Rule { cfa: Cfa::AtFp(8), fp: Saved::AtFp, ra: RA };
        let stack = [BASE + 32, 99, 0, 0x6000];
        assert_eq!(step(rule, at(0x5000, BASE, BASE + 8), &stack), Ok(at(0x6000, BASE + 32, 99)));
    }

    #[test]
    fn the_stack_may_be_switched_to_a_lower_address() {
        let rule = Rule { cfa: Cfa::Fp(16), fp: Saved::BelowCfa(16), ra: RA };
        let registers = at(0x5000, BASE + 0x10_0000, BASE);
        assert_eq!(step(rule, registers, &[99, 0x6000]), Ok(at(0x6000, BASE + 16, 99)));
    }

    #[test]
    fn linkage_table_entries_push_a_word_half_way() {
        let rule = Rule { cfa: Cfa::Plt(11), fp: Saved::InRegister, ra: RA };
        assert_eq!(step(rule, at(0x5006, BASE, 1), &[0x6000, 0x7000]), Ok(at(0x6000, BASE + 8, 1)));
        assert_eq!(step(rule, at(0x500b, BASE, 1), &[0x6000, 0x7000]), Ok(at(0x7000, BASE + 16, 1)));
    }

    #[test]
    fn ends_are_told_apart() {
        let by = |cfa, stack: &[u64]| {
            step(Rule { cfa, fp: Saved::InRegister, ra: RA }, at(0x5000, BASE, 0), stack)
        };
        assert_eq!(by(Cfa::Root, &[0x6000]), Err(StackEnd::Root));
        assert_eq!(by(Cfa::Nothing, &[0x6000]), Err(StackEnd::NoRule));
        assert_eq!(by(Cfa::Sp(8), &[0]), Err(StackEnd::ChainEnd));
        assert_eq!(by(Cfa::Sp(8), &[12]), Err(StackEnd::BadReturnAddress));
        assert_eq!(by(Cfa::Sp(16), &[0x6000]), Err(StackEnd::Unreadable));
        assert_eq!(by(Cfa::Sp(0), &[0x6000]), Err(StackEnd::Unreadable));
    }

    #[test]
    fn a_signal_frame_gives_back_all_registers() {
        let mut stack = [0; 32];
        (stack[5 + 10], stack[5 + 15], stack[5 + 16]) = (11, 22, 0x3333);
        let rule = Rule::only(Cfa::Signal);
        let caller = caller(rule, &at(0x5000, BASE, 0), &SignalFrame::X86_64, u64::MAX, &mut Stack(&stack));
        assert_eq!(caller, Ok(Caller { registers: at(0x3333, 22, 11), interrupted: true }));
    }

    #[test]
    fn a_leaf_returns_by_the_link_register() {
        let rule = Rule { cfa: Cfa::Sp(0), fp: Saved::InRegister, ra: Saved::InRegister };
        let registers = Registers { lr: 0x6000, ..at(0x5000, BASE, 9) };
        assert_eq!(step(rule, registers, &[]), Ok(at(0x6000, BASE, 9)));
        assert_eq!(step(rule, at(0x5000, BASE, 9), &[]), Err(StackEnd::ChainEnd));
    }
}
