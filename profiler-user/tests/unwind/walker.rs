//! What a step starts from: registers of an interrupted thread, and its memory.

use profiler_common::unwind::step::OtherRegisters;
use profiler_common::unwind::{Kept, Registers, UserMemory};

use crate::random::{Random, scramble};

/// Where the object under test is loaded.
pub(crate) const LOAD_ADDRESS: u64 = 0x7f12_3400_0000;

const STACK: u64 = 0x7ffd_0000_0000;

/// Memory without end. Each address holds a word that could be a return address.
pub(crate) struct Memory;

impl UserMemory for Memory {
    fn read(&mut self, address: u64) -> Option<u64> {
        Some(0x5555_0000_0000 + (scramble(address) & 0xffff_fff8))
    }

    fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
        Some([self.read(address)?, self.read(address.wrapping_add(8))?])
    }
}

/// The registers that a walk knows in its innermost frame: each has a value that could be an address in a stack.
pub(crate) struct Others;

impl OtherRegisters for Others {
    fn get(&self, place: u8) -> Option<u64> {
        Some(STACK + (scramble(place.into()) & 0xffff_fff8))
    }
}

/// Registers at an address of the object. The frame pointer lies above the stack pointer, as in a frame.
pub(crate) fn registers(address: u64, random: &mut Random) -> Registers {
    let sp = STACK + random.below(1 << 30) * 8;
    Registers {
        pc: LOAD_ADDRESS + address,
        sp,
        fp: sp + 8 + random.below(1 << 16) * 8,
        lr: 0,
        bx: Kept::Value(sp + 64),
    }
}
