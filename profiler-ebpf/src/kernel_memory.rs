//! Reading fields of kernel structures whose offsets userspace took from BTF.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::bpf_probe_read_kernel;

/// A kernel address.
pub(crate) type KernelAddress = u64;

/// The 32-bit field at `base + offset`; 0 when it cannot be read.
#[inline(always)]
pub(crate) fn read_u32(base: KernelAddress, offset: u32) -> u32 {
    read(base, offset)
}

/// The 64-bit field at `base + offset`; 0 when it cannot be read.
#[inline(always)]
pub(crate) fn read_u64(base: KernelAddress, offset: u32) -> u64 {
    read(base, offset)
}

/// `N` words at `base + offset`; zeros when they cannot be read.
#[inline(always)]
pub(crate) fn read_words<const N: usize>(base: KernelAddress, offset: u32) -> [u64; N] {
    read(base, offset)
}

/// Fills words from this address on.
#[inline(always)]
pub(crate) fn read_into<const N: usize>(base: KernelAddress, words: &mut [u64; N]) {
    // SAFETY: the destination has the given size; the helper checks the source.
    unsafe {
        bpf_probe_read_kernel(words.as_mut_ptr().cast(), size_of::<[u64; N]>() as u32, source(base, 0))
    };
}

/// A value of a type that any bytes make.
///
/// The result is not looked at: a branch would double the ways that the verifier follows. Nor is the place cleared before, since a value of
/// more than a word would cost a call of `memset`.
#[inline(always)]
fn read<T: Copy>(base: KernelAddress, offset: u32) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the destination is a local of the given size; the helper checks the source.
    unsafe { bpf_probe_read_kernel(value.as_mut_ptr().cast(), size_of::<T>() as u32, source(base, offset)) };
    // SAFETY: the helper wrote all bytes: zeros where it failed.
    unsafe { value.assume_init() }
}

#[inline(always)]
fn source(base: KernelAddress, offset: u32) -> *const c_void {
    base.wrapping_add(u64::from(offset)) as *const c_void
}
