//! The walk of a user stack: rows compiled from call-frame information, and one step by row or by frame pointer.
//!
//! The same code runs in the kernel and in host tests, over two traits: user memory and compiled tables.

pub mod frame_pointer;
pub mod row;
pub mod search;
pub mod step;
pub mod window;

use crate::stack::StackEnd;

/// The user memory of the task that is walked.
pub trait UserMemory {
    /// The word at this address, or `None` when it cannot be read.
    fn read(&mut self, address: u64) -> Option<u64>;

    /// The two words at this address, or `None` when they cannot be read.
    fn read_pair(&mut self, address: u64) -> Option<[u64; 2]>;
}

/// The registers that a walk carries from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Address of the next instruction.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer (%rbp, x29).
    pub fp: u64,
    /// Link register; known in the innermost frame of aarch64 only, else 0.
    pub lr: u64,
    /// %rbx, which few frames are found by; nothing on aarch64.
    pub bx: Kept,
}

/// A register that is read only if a frame is found by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its value.
    Value(u64),
    /// The address of the word where a function saved it.
    At(u64),
    /// Nobody knows.
    Unknown,
}

impl Kept {
    /// The value, or why there is none.
    #[inline(always)]
    pub fn value(self, memory: &mut impl UserMemory) -> Result<u64, StackEnd> {
        match self {
            Self::Value(value) => Ok(value),
            Self::At(address) => memory.read(address).ok_or(StackEnd::Unreadable),
            Self::Unknown => Err(StackEnd::NoRule),
        }
    }
}

/// Bits of a return address that are the address, and what must hold of one.
#[inline(always)]
fn user_code_address(word: u64, address_mask: u64) -> Option<u64> {
    let address = word & address_mask;
    if address < LOWEST_USER_ADDRESS || address >> 56 != 0 { None } else { Some(address) }
}

/// First addresses no program uses: the kernel refuses mappings there by default (`vm.mmap_min_addr`).
const LOWEST_USER_ADDRESS: u64 = 0x1000;
