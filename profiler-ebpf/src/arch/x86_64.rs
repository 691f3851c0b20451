//! x86_64: `struct pt_regs` of `arch/x86/include/asm/ptrace.h`, in both places.

use profiler_common::unwind::step::SignalFrame;

use super::{Arch, OtherRegisters, UserRegisters, word};
use crate::kernel_memory::{KernelAddress, read_into, read_words};

pub(crate) struct X86_64;

const BP: usize = 4 * 8;
const BX: usize = 5 * 8;
const IP: usize = 16 * 8;
const CS: usize = 17 * 8;
const SP: usize = 19 * 8;
const SIZE: usize = 21 * 8;

/// Code segment of 32-bit user code (`__USER32_CS` of `arch/x86/include/asm/segment.h`).
const USER32_CS: u64 = 0x23;

impl Arch for X86_64 {
    const SIGNAL_FRAME: SignalFrame = SignalFrame::X86_64;
    const HAS_OTHERS: bool = true;

    #[inline(always)]
    fn others(ctx: *const u8, into: &mut OtherRegisters) {
        macro_rules! copy {
            ($($index:literal)*) => {$(
                // SAFETY: the context begins with the registers.
                into[$index] = unsafe { word::<{ $index * 8 }>(ctx) };
            )*};
        }
        copy!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }

    #[inline(always)]
    fn saved_others(pt_regs: KernelAddress, into: &mut OtherRegisters) {
        read_into(pt_regs, into);
    }

    /// The forms of CALL (Intel SDM, volume 2): E8 with four bytes, and FF /2 with what addressing takes.
    #[inline(always)]
    fn ends_with_call(code: u64) -> bool {
        let near = code >> 24 & 0xff == 0xe8;
        let through = |len: u32| code >> (8 * (8 - len)) & 0x38ff == 0x10ff;
        near | through(2) | through(3) | through(4) | through(6) | through(7)
    }

    #[inline(always)]
    fn sample_period(ctx: *const u8) -> u64 {
        // SAFETY: the context has its period behind the registers.
        unsafe { word::<SIZE>(ctx) }
    }

    #[inline(always)]
    fn user_mode(ctx: *const u8) -> bool {
        // SAFETY: the context begins with the registers.
        let cs = unsafe { word::<CS>(ctx) };
        cs & 3 == 3
    }

    #[inline(always)]
    fn registers(ctx: *const u8) -> UserRegisters {
        // SAFETY: the context begins with the registers.
        let pc = unsafe { word::<IP>(ctx) };
        // SAFETY: as above.
        let sp = unsafe { word::<SP>(ctx) };
        // SAFETY: as above.
        let fp = unsafe { word::<BP>(ctx) };
        // SAFETY: as above.
        let bx = unsafe { word::<BX>(ctx) };
        // SAFETY: as above.
        let cs = unsafe { word::<CS>(ctx) };
        user_registers(pc, sp, fp, bx, cs)
    }

    #[inline(always)]
    fn saved_registers(pt_regs: KernelAddress) -> UserRegisters {
        const WORDS: usize = (SP - BP) / 8 + 1;
        let words: [u64; WORDS] = read_words(pt_regs, BP as u32);
        let register = |offset: usize| words[(offset - BP) / 8];
        user_registers(register(IP), register(SP), register(BP), register(BX), register(CS))
    }
}

#[inline(always)]
fn user_registers(pc: u64, sp: u64, fp: u64, bx: u64, cs: u64) -> UserRegisters {
    UserRegisters { pc, sp, fp, lr: 0, bx, compat: cs & 0xffff == USER32_CS }
}
