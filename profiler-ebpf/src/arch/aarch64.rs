//! aarch64: `struct user_pt_regs` of `arch/arm64/include/uapi/asm/ptrace.h`, with which the kernel's `struct pt_regs` begins.

use profiler_common::unwind::step::SignalFrame;

use super::{Arch, OtherRegisters, UserRegisters, word};
use crate::kernel_memory::{KernelAddress, read_words};

pub(crate) struct Aarch64;

const FP: usize = 29 * 8;
const LR: usize = 30 * 8;
const SP: usize = 31 * 8;
const PC: usize = 32 * 8;
const PSTATE: usize = 33 * 8;
const SIZE: usize = 34 * 8;

/// Exception level and stack selection; 0 is user code (`PSR_MODE_EL0t`).
const MODE_MASK: u64 = 0xf;

/// Set for 32-bit code (`PSR_MODE32_BIT`).
const MODE32_BIT: u64 = 0x10;

impl Arch for Aarch64 {
    const SIGNAL_FRAME: SignalFrame = SignalFrame::AARCH64;
    const HAS_OTHERS: bool = false;

    #[inline(always)]
    fn others(_: *const u8, _: &mut OtherRegisters) {}

    #[inline(always)]
    fn saved_others(_: KernelAddress, _: &mut OtherRegisters) {}

    /// BL, BLR and BLR with authentication (Arm ARM, C6.2).
    #[inline(always)]
    fn ends_with_call(code: u64) -> bool {
        let instruction = (code >> 32) as u32;
        instruction & 0xfc00_0000 == 0x9400_0000 || instruction & 0xfeff_f000 == 0xd63f_0000
    }

    #[inline(always)]
    fn sample_period(ctx: *const u8) -> u64 {
        // SAFETY: the context has its period behind the registers.
        unsafe { word::<SIZE>(ctx) }
    }

    #[inline(always)]
    fn user_mode(ctx: *const u8) -> bool {
        // SAFETY: the context begins with the registers.
        let pstate = unsafe { word::<PSTATE>(ctx) };
        pstate & MODE_MASK == 0
    }

    #[inline(always)]
    fn registers(ctx: *const u8) -> UserRegisters {
        // SAFETY: the context begins with the registers.
        let pc = unsafe { word::<PC>(ctx) };
        // SAFETY: as above.
        let sp = unsafe { word::<SP>(ctx) };
        // SAFETY: as above.
        let fp = unsafe { word::<FP>(ctx) };
        // SAFETY: as above.
        let lr = unsafe { word::<LR>(ctx) };
        // SAFETY: as above.
        let pstate = unsafe { word::<PSTATE>(ctx) };
        user_registers(pc, sp, fp, lr, pstate)
    }

    #[inline(always)]
    fn saved_registers(pt_regs: KernelAddress) -> UserRegisters {
        const WORDS: usize = (PSTATE - FP) / 8 + 1;
        let words: [u64; WORDS] = read_words(pt_regs, FP as u32);
        let register = |offset: usize| words[(offset - FP) / 8];
        user_registers(register(PC), register(SP), register(FP), register(LR), register(PSTATE))
    }
}

#[inline(always)]
fn user_registers(pc: u64, sp: u64, fp: u64, lr: u64, pstate: u64) -> UserRegisters {
    UserRegisters { pc, sp, fp, lr, bx: 0, compat: pstate & MODE32_BIT != 0 }
}
