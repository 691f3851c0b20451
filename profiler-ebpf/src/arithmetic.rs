//! Choices without branches: where a loop has one, the verifier follows each way through all its turns.

use core::arch::asm;

/// 1 for a number with its sign bit set, else 0.
///
/// No mask is made of it: newer verifiers follow both values of a mask (`maybe_fork_scalars`), but not both factors of a product.
#[inline(always)]
pub(crate) fn sign(number: u64) -> u64 {
    let mut sign = number >> 63;
    // Keeps the compiler from making a branch of it.
    // SAFETY: the instruction assigns a register to itself.
    unsafe { asm!("{0} = {0}", inout(reg) sign, options(pure, nomem, nostack)) };
    sign
}

/// `yes` where `choice` is 1, `no` where it is 0.
#[inline(always)]
pub(crate) fn select(choice: u64, yes: u64, no: u64) -> u64 {
    no.wrapping_add(choice.wrapping_mul(yes.wrapping_sub(no)))
}
