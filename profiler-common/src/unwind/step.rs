//! One step by a rule.

use super::row::{Base, Cfa, Row, Saved};
use super::{Kept, Registers, UserMemory, user_code_address};
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
    /// Of %rbx; 0 where there is none.
    pub bx: u64,
}

impl SignalFrame {
    /// x86_64: `struct rt_sigframe` without its return address, `uc_mcontext` at 40 (`arch/x86/include/uapi/asm/sigcontext.h`).
    pub const X86_64: Self =
        Self { pc: 40 + 16 * 8, sp: 40 + 15 * 8, fp: 40 + 10 * 8, lr: 0, bx: 40 + 11 * 8 };

    /// aarch64: `struct rt_sigframe`, `regs` of `uc_mcontext` at 312 (`arch/arm64/include/uapi/asm/sigcontext.h`).
    pub const AARCH64: Self =
        Self { pc: 312 + 32 * 8, sp: 312 + 31 * 8, fp: 312 + 29 * 8, lr: 312 + 30 * 8, bx: 0 };
}

/// The caller of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its registers.
    pub registers: Registers,
    /// Whether its address is that of the next instruction, and not a return address: it was interrupted by a signal.
    pub interrupted: bool,
}

/// The registers of a frame that a walk does not carry.
pub trait OtherRegisters {
    /// The value of the register at this place of `struct pt_regs`, in words; `None` where it is not known: in all frames but the innermost.
    fn get(&self, place: u8) -> Option<u64>;
}

/// The caller of the frame with these registers by this row, or why there is none.
///
/// `address_mask` clears the bits of a return address that are no part of it (pointer authentication codes).
#[inline(always)]
pub fn caller(
    row: Row,
    registers: &Registers,
    others: &impl OtherRegisters,
    (signal_frame, address_mask): (&SignalFrame, u64),
    memory: &mut impl UserMemory,
) -> Result<Caller, StackEnd> {
    let rule = row.rule();
    let plus = |base: u64, offset: u32| base.wrapping_add(u64::from(offset));
    let cfa = match rule.cfa {
        Cfa::Root => return Err(StackEnd::Root),
        Cfa::Nothing | Cfa::Unsupported => return Err(StackEnd::NoRule),
        Cfa::Signal => return interrupted(registers, signal_frame, memory),
        Cfa::Sp(offset) => plus(registers.sp, offset),
        Cfa::Fp(offset) => plus(registers.fp, offset),
        Cfa::Bx(offset) => plus(registers.bx.value(memory)?, offset),
        Cfa::Other(place, offset) => match others.get(place) {
            Some(value) => plus(value, offset),
            None => return Err(StackEnd::NoRule),
        },
        Cfa::Deref(base, offset, added) => {
            let base = match base {
                Base::Sp => registers.sp,
                Base::Fp => registers.fp,
                Base::Bx => registers.bx.value(memory)?,
            };
            match memory.read(base.wrapping_add_signed(i64::from(offset))) {
                Some(word) => plus(word, added),
                None => return Err(StackEnd::Unreadable),
            }
        }
        Cfa::Plt(byte) => plus(registers.sp, if registers.pc & 15 >= u64::from(byte) { 16 } else { 8 }),
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
            let link = match ra {
                Saved::Other(place) => match others.get(place) {
                    Some(value) => value,
                    None => return Err(StackEnd::NoRule),
                },
                _ => registers.lr,
            };
            let Some(return_address) = restore(ra, cfa, link, registers.fp, memory) else {
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
    // From the row, which takes less of a program's stack than what it says.
    let bx = match row.bx() {
        Saved::InRegister => registers.bx,
        Saved::BelowCfa(below) => Kept::At(cfa.wrapping_sub(u64::from(below))),
        Saved::AtFp | Saved::Other(_) | Saved::Unknown => Kept::Unknown,
    };
    Ok(Caller { registers: Registers { pc, sp: cfa, fp, lr: 0, bx }, interrupted: row.interrupted() })
}

#[inline(always)]
fn restore(saved: Saved, cfa: u64, in_register: u64, fp: u64, memory: &mut impl UserMemory) -> Option<u64> {
    match saved {
        Saved::InRegister | Saved::Other(_) | Saved::Unknown => Some(in_register),
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
    let bx = if frame.bx == 0 { Kept::Unknown } else { Kept::At(registers.sp.wrapping_add(frame.bx)) };
    match user_code_address(pc, u64::MAX) {
        Some(pc) => Ok(Caller { registers: Registers { pc, sp, fp, lr, bx }, interrupted: true }),
        None => Err(StackEnd::BadReturnAddress),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Rule;
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

    /// Registers 0 and on.
    struct Others<'a>(&'a [u64]);

    impl OtherRegisters for Others<'_> {
        fn get(&self, number: u8) -> Option<u64> {
            self.0.get(usize::from(number)).copied()
        }
    }

    const MACHINE: (&SignalFrame, u64) = (&SignalFrame::X86_64, u64::MAX);

    fn step(rule: Rule, registers: Registers, stack: &[u64]) -> Result<Registers, StackEnd> {
        caller(Row::new(0, rule), &registers, &Others(&[]), MACHINE, &mut Stack(stack))
            .map(|caller| caller.registers)
    }

    fn at(pc: u64, sp: u64, fp: u64) -> Registers {
        Registers { pc, sp, fp, lr: 0, bx: Kept::Value(0xb) }
    }

    const RA: Saved = Saved::BelowCfa(8);

    #[test]
    fn a_function_without_frame_keeps_the_frame_pointer() {
        let rule = Rule::new(Cfa::Sp(8), Saved::InRegister, RA);
        assert_eq!(step(rule, at(0x5000, BASE, 77), &[0x6000]), Ok(at(0x6000, BASE + 8, 77)));
    }

    #[test]
    fn a_saved_frame_pointer_is_restored() {
        let rule = Rule::new(Cfa::Fp(16), Saved::BelowCfa(16), RA);
        assert_eq!(step(rule, at(0x5000, BASE, BASE + 8), &[0, 99, 0x6000]), Ok(at(0x6000, BASE + 24, 99)));
        let apart = Rule::new(Cfa::Sp(32), Saved::BelowCfa(24), RA);
        assert_eq!(step(apart, at(0x5000, BASE, 0), &[0, 99, 0, 0x6000]), Ok(at(0x6000, BASE + 32, 99)));
    }

    #[test]
    fn an_aligned_stack_is_found_through_the_frame_pointer() {
        let rule = Rule::new(Cfa::Deref(Base::Fp, -8, 0), Saved::AtFp, RA);
        let stack = [BASE + 32, 99, 0, 0x6000];
        assert_eq!(step(rule, at(0x5000, BASE, BASE + 8), &stack), Ok(at(0x6000, BASE + 32, 99)));
    }

    #[test]
    fn the_stack_may_be_switched_to_a_lower_address() {
        let rule = Rule::new(Cfa::Fp(16), Saved::BelowCfa(16), RA);
        let registers = at(0x5000, BASE + 0x10_0000, BASE);
        assert_eq!(step(rule, registers, &[99, 0x6000]), Ok(at(0x6000, BASE + 16, 99)));
    }

    #[test]
    fn linkage_table_entries_push_a_word_half_way() {
        let rule = Rule::new(Cfa::Plt(11), Saved::InRegister, RA);
        assert_eq!(step(rule, at(0x5006, BASE, 1), &[0x6000, 0x7000]), Ok(at(0x6000, BASE + 8, 1)));
        assert_eq!(step(rule, at(0x500b, BASE, 1), &[0x6000, 0x7000]), Ok(at(0x7000, BASE + 16, 1)));
    }

    #[test]
    fn ends_are_told_apart() {
        let by = |cfa, stack: &[u64]| step(Rule::new(cfa, Saved::InRegister, RA), at(0x5000, BASE, 0), stack);
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
        let caller =
            caller(Row::new(0, rule), &at(0x5000, BASE, 0), &Others(&[]), MACHINE, &mut Stack(&stack));
        let registers = Registers { bx: Kept::At(BASE + (5 + 11) * 8), ..at(0x3333, 22, 11) };
        assert_eq!(caller, Ok(Caller { registers, interrupted: true }));
    }

    #[test]
    fn a_frame_is_found_by_rbx_wherever_it_was_saved() {
        let rule = Rule::new(Cfa::Bx(16), Saved::InRegister, RA);
        let rule = Rule { bx: Saved::BelowCfa(16), ..rule };
        let stack = [BASE + 8, 0x66, 0x6000, 0x77];
        let caller = |bx| step(rule, Registers { bx, ..at(0x5000, BASE, 9) }, &stack);
        let found = Registers { bx: Kept::At(BASE + 8), ..at(0x6000, BASE + 24, 9) };
        assert_eq!(caller(Kept::Value(BASE + 8)), Ok(found));
        assert_eq!(caller(Kept::At(BASE)), Ok(found));
        assert_eq!(caller(Kept::Unknown), Err(StackEnd::NoRule));
        assert_eq!(caller(Kept::At(BASE + 1000)), Err(StackEnd::Unreadable));
    }

    #[test]
    fn other_registers_are_those_of_the_innermost_frame() {
        let stack = [0, 0x6000];
        let by = |rule, others: &[u64]| {
            caller(Row::new(0, rule), &at(0x5000, BASE, 9), &Others(others), MACHINE, &mut Stack(&stack))
                .map(|caller| caller.registers)
        };
        let rule = Rule::new(Cfa::Other(1, 8), Saved::InRegister, RA);
        assert_eq!(by(rule, &[0, BASE + 8]), Ok(at(0x6000, BASE + 16, 9)));
        assert_eq!(by(rule, &[]), Err(StackEnd::NoRule));
        // vfork keeps its return address in %rdi.
        let rule = Rule::new(Cfa::Sp(0), Saved::InRegister, Saved::Other(0));
        assert_eq!(by(rule, &[0x7000]), Ok(at(0x7000, BASE, 9)));
        assert_eq!(by(rule, &[]), Err(StackEnd::NoRule));
    }

    #[test]
    fn a_switched_stack_is_found_by_the_word_that_links_it() {
        let rule = Rule::new(Cfa::Deref(Base::Fp, 0, 24), Saved::BelowCfa(24), Saved::BelowCfa(16));
        let rule = Rule { interrupted: true, ..rule };
        let stack = [BASE + 8, 99, 0x6000, 0x77];
        let caller =
            caller(Row::new(0, rule), &at(0x5000, BASE, BASE), &Others(&[]), MACHINE, &mut Stack(&stack));
        assert_eq!(caller, Ok(Caller { registers: at(0x6000, BASE + 32, 99), interrupted: true }));
    }

    #[test]
    fn a_leaf_returns_by_the_link_register() {
        let rule = Rule::new(Cfa::Sp(0), Saved::InRegister, Saved::InRegister);
        let registers = Registers { lr: 0x6000, ..at(0x5000, BASE, 9) };
        // A row of this kind has no room for %rbx.
        let caller = Registers { bx: Kept::Unknown, ..at(0x6000, BASE, 9) };
        assert_eq!(step(rule, registers, &[]), Ok(caller));
        assert_eq!(step(rule, at(0x5000, BASE, 9), &[]), Err(StackEnd::ChainEnd));
    }
}
