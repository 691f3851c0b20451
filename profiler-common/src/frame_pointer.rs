//! One step of a walk along frame pointers.
//!
//! x86_64 (psABI §3.2.2, %rbp) and aarch64 (AAPCS64 §6.4.6, frame record) agree: the frame pointer holds the address of two words,
//! the caller's frame pointer and the return address.

use crate::stack::StackEnd;

/// The user memory of the task that is walked.
pub trait UserMemory {
    /// The two words at this address, or `None` when they cannot be read.
    fn read_pair(&self, address: u64) -> Option<[u64; 2]>;
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Address of the next instruction, in user memory.
    pub pc: u64,
    /// Frame pointer register.
    pub fp: u64,
    /// Lowest address at which the frame pointer can point: the stack pointer, or the end of the callee's record.
    pub floor: u64,
}

/// First addresses no program uses: the kernel refuses mappings there by default (`vm.mmap_min_addr`).
const LOWEST_USER_ADDRESS: u64 = 0x1000;

/// The caller of `frame`, or why there is none.
///
/// `address_mask` clears the bits of a return address that are no part of it (pointer authentication codes).
#[inline(always)]
pub fn caller(frame: Frame, address_mask: u64, memory: &impl UserMemory) -> Result<Frame, StackEnd> {
    if frame.fp == 0 {
        return Err(StackEnd::ChainEnd);
    }
    // The stack grows down, so callers lie higher; anything else is no chain and could loop.
    if frame.fp & 7 != 0 || frame.fp < frame.floor {
        return Err(StackEnd::BadFramePointer);
    }
    let Some([fp, return_address]) = memory.read_pair(frame.fp) else {
        return Err(StackEnd::Unreadable);
    };
    let pc = return_address & address_mask;
    if pc == 0 {
        return Err(StackEnd::ChainEnd);
    }
    if pc < LOWEST_USER_ADDRESS || pc >> 56 != 0 {
        return Err(StackEnd::BadReturnAddress);
    }
    Ok(Frame { pc, fp, floor: frame.fp + 16 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffd_0000_0000;

    struct Stack([u64; 8]);

    impl UserMemory for Stack {
        fn read_pair(&self, address: u64) -> Option<[u64; 2]> {
            let at = usize::try_from(address.checked_sub(BASE)? / 8).ok()?;
            Some([*self.0.get(at)?, *self.0.get(at + 1)?])
        }
    }

    fn walk(stack: [u64; 8], mask: u64) -> ([u64; 8], usize, StackEnd) {
        let (mut pcs, mut n) = ([0; 8], 0);
        let mut frame = Frame { pc: 0x40_0000, fp: BASE, floor: BASE };
        loop {
            pcs[n] = frame.pc;
            n += 1;
            match caller(frame, mask, &Stack(stack)) {
                Ok(next) => frame = next,
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
