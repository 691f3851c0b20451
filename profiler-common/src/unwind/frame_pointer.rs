//! One step along frame pointers.
//!
//! x86_64 (psABI §3.2.2, %rbp) and aarch64 (AAPCS64 §6.4.6, frame record) agree: the frame pointer holds the address of two words,
//! the caller's frame pointer and the return address.

use super::{Kept, Registers, UserMemory, user_code_address};
use crate::stack::StackEnd;

/// The registers of the caller, or why there is none.
///
/// `address_mask` clears the bits of a return address that are no part of it (pointer authentication codes).
#[inline(always)]
pub fn caller(
    registers: &Registers,
    address_mask: u64,
    memory: &mut impl UserMemory,
) -> Result<Registers, StackEnd> {
    let fp = registers.fp;
    if fp == 0 {
        return Err(StackEnd::ChainEnd);
    }
    // The stack grows down, so callers lie higher; anything else is no chain and could loop.
    if fp & 7 != 0 || fp < registers.sp {
        return Err(StackEnd::BadFramePointer);
    }
    let Some([callers_fp, return_address]) = memory.read_pair(fp) else {
        return Err(StackEnd::Unreadable);
    };
    if return_address == 0 {
        return Err(StackEnd::ChainEnd);
    }
    let Some(pc) = user_code_address(return_address, address_mask) else {
        return Err(StackEnd::BadReturnAddress);
    };
    Ok(Registers { pc, sp: fp + 16, fp: callers_fp, lr: 0, bx: Kept::Unknown })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffd_0000_0000;

    struct Stack([u64; 8]);

    impl UserMemory for Stack {
        fn read(&mut self, address: u64) -> Option<u64> {
            self.0.get(usize::try_from(address.checked_sub(BASE)? / 8).ok()?).copied()
        }

        fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
            Some([self.read(address)?, self.read(address + 8)?])
        }
    }

    fn walk(stack: [u64; 8], mask: u64) -> ([u64; 8], usize, StackEnd) {
        let (mut pcs, mut n) = ([0; 8], 0);
        let mut registers = Registers { pc: 0x40_0000, sp: BASE, fp: BASE, lr: 0, bx: Kept::Unknown };
        loop {
            pcs[n] = registers.pc;
            n += 1;
            match caller(&registers, mask, &mut Stack(stack)) {
                Ok(next) => registers = next,
                Err(end) => return (pcs, n, end),
            }
        }
    }

    #[test]
    fn a_chain_is_followed_to_its_end() {
        let (pcs, n, end) = walk([BASE + 16, 0x40_1000, BASE + 32, 0x40_2000, 0, 0x40_3000, 0, 0], u64::MAX);
        assert_eq!((&pcs[..n], end), (&[0x40_0000, 0x40_1000, 0x40_2000, 0x40_3000][..], StackEnd::ChainEnd));
    }

    #[test]
    fn a_zero_return_address_ends_the_chain() {
        let (_, n, end) = walk([BASE + 16, 0x40_1000, BASE + 32, 0, 0, 0, 0, 0], u64::MAX);
        assert_eq!((n, end), (2, StackEnd::ChainEnd));
    }

    #[test]
    fn a_chain_never_turns_back_but_keeps_the_last_return_address() {
        let (pcs, n, end) = walk([BASE + 16, 0x40_1000, BASE, 0x40_2000, 0, 0, 0, 0], u64::MAX);
        assert_eq!((&pcs[..n], end), (&[0x40_0000, 0x40_1000, 0x40_2000][..], StackEnd::BadFramePointer));
    }

    #[test]
    fn what_is_no_stack_is_named() {
        assert_eq!(walk([BASE + 19, 0x40_1000, 0, 0, 0, 0, 0, 0], u64::MAX).2, StackEnd::BadFramePointer);
        assert_eq!(walk([BASE + 4096, 0x40_1000, 0, 0, 0, 0, 0, 0], u64::MAX).2, StackEnd::Unreadable);
        assert_eq!(walk([BASE + 16, u64::MAX, 0, 0, 0, 0, 0, 0], u64::MAX).2, StackEnd::BadReturnAddress);
        assert_eq!(walk([BASE + 16, 42, 0, 0, 0, 0, 0, 0], u64::MAX).2, StackEnd::BadReturnAddress);
    }

    #[test]
    fn authentication_codes_are_masked() {
        let signed = 0x002a_0000_0040_1000 | 0xff << 56;
        let (pcs, n, _) = walk([BASE + 16, signed, 0, 0x40_2000, 0, 0, 0, 0], (1 << 48) - 1);
        assert_eq!(&pcs[..n], &[0x40_0000, 0x40_1000, 0x40_2000]);
    }
}
