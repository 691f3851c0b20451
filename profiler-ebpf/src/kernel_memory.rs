//! Reading fields of kernel structures whose offsets userspace took from BTF.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::bpf_probe_read_kernel;

/// A kernel address.
pub(crate) type KernelAddress = u64;

/// The 32-bit field at `base + offset`; 0 when it cannot be read.
///
/// Here and below the result is not looked at: a branch would double the ways that the verifier follows.
#[inline(always)]
pub(crate) fn read_u32(base: KernelAddress, offset: u32) -> u32 {
    let mut value = 0u32;
    // SAFETY: the destination is a local of the given size; the helper checks the source, and zeroes the destination where it fails.
    unsafe { bpf_probe_read_kernel((&raw mut value).cast(), 4, source(base, offset)) };
    value
}

/// The 64-bit field at `base + offset`; 0 when it cannot be read.
#[inline(always)]
pub(crate) fn read_u64(base: KernelAddress, offset: u32) -> u64 {
    let mut value = 0u64;
    // SAFETY: as above.
    unsafe { bpf_probe_read_kernel((&raw mut value).cast(), 8, source(base, offset)) };
    value
}

/// `N` words at `base + offset`; zeros when they cannot be read.
#[inline(always)]
pub(crate) fn read_words<const N: usize>(base: KernelAddress, offset: u32) -> [u64; N] {
    let mut words = [0u64; N];
    // SAFETY: as above.
    unsafe { bpf_probe_read_kernel((&raw mut words).cast(), N as u32 * 8, source(base, offset)) };
    words
}

#[inline(always)]
fn source(base: KernelAddress, offset: u32) -> *const c_void {
    base.wrapping_add(u64::from(offset)) as *const c_void
}
