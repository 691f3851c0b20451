//! What differs between machines: where registers and the sample's period lie.

pub(crate) mod aarch64;
pub(crate) mod x86_64;

use profiler_common::unwind::step::SignalFrame;

use crate::kernel_memory::KernelAddress;

/// Registers of the interrupted user code that a walk begins with.
#[derive(Clone, Copy)]
pub(crate) struct UserRegisters {
    /// Address of the next instruction.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 where there is none.
    pub lr: u64,
    /// %rbx; 0 where there is none.
    pub bx: u64,
    /// Whether the code is 32-bit.
    pub compat: bool,
}

/// All registers of the innermost frame, in the order of `struct pt_regs`; void where no rule names one.
pub(crate) type OtherRegisters = [u64; OTHERS];

/// Words of `struct pt_regs` of x86_64 up to the last general register, rounded up to a power of two.
pub(crate) const OTHERS: usize = 16;

/// A machine.
///
/// `ctx` is a `struct bpf_perf_event_data`; its first member is the machine's `bpf_user_pt_regs_t`.
/// All offsets are constants, since the verifier refuses a context access at a computed one.
pub(crate) trait Arch {
    /// Where a signal frame keeps the registers.
    const SIGNAL_FRAME: SignalFrame;

    /// Whether rules may name [`OtherRegisters`], and %rbx.
    const HAS_OTHERS: bool;

    /// The other registers in the context, when it is in user mode.
    fn others(ctx: *const u8, into: &mut OtherRegisters);

    /// The other registers at what `bpf_task_pt_regs` returned.
    fn saved_others(pt_regs: KernelAddress, into: &mut OtherRegisters);

    /// Whether these eight bytes of code end with a call.
    fn ends_with_call(code: u64) -> bool;

    /// `sample_period` of the context, in units of the event.
    fn sample_period(ctx: *const u8) -> u64;

    /// Whether the interrupted code ran in user mode.
    fn user_mode(ctx: *const u8) -> bool;

    /// The registers in the context; those of user code only when [`Self::user_mode`].
    fn registers(ctx: *const u8) -> UserRegisters;

    /// The user registers saved when the current task entered the kernel, at what `bpf_task_pt_regs` returned.
    ///
    /// They are copied: were they read like the context's, the compiler would make one load of both, which the verifier refuses.
    fn saved_registers(pt_regs: KernelAddress) -> UserRegisters;
}

/// Reads the word at a constant offset.
///
/// # Safety
///
/// `base + OFFSET` must be readable in the eyes of the verifier.
#[inline(always)]
unsafe fn word<const OFFSET: usize>(base: *const u8) -> u64 {
    // SAFETY: the caller vouches for the whole word.
    unsafe { base.wrapping_add(OFFSET).cast::<u64>().read_volatile() }
}
