//! Memory of the interrupted task.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use profiler_common::unwind::{
    UserMemory,
    window::{WINDOW_WORDS, WindowSource},
};

/// Memory of the interrupted task. Pages that are not resident cannot be read: a sample must not sleep.
pub(crate) struct CurrentTask;

impl UserMemory for CurrentTask {
    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        read(address)
    }

    #[inline(always)]
    fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
        read(address)
    }
}

impl WindowSource for CurrentTask {
    #[inline(always)]
    fn fill(&mut self, address: u64, words: &mut [u64; WINDOW_WORDS]) -> bool {
        copy(address, words)
    }
}

/// Reads a word to a place that is not on the stack; whether it could be read.
#[inline(always)]
pub(crate) fn read_into(address: u64, word: &mut u64) -> bool {
    copy(address, word)
}

/// A value of a type that any bytes make.
#[inline(always)]
fn read<T: Copy>(address: u64) -> Option<T> {
    // Not cleared before: two words would cost a call of `memset` in each frame.
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the helper wrote all bytes.
    if copy(address, value.as_mut_ptr()) { Some(unsafe { value.assume_init() }) } else { None }
}

/// Fills a value of a type that any bytes make. What cannot be read becomes zeros.
#[inline(always)]
fn copy<T>(address: u64, to: *mut T) -> bool {
    // SAFETY: the destination is a value of the given size; the helper checks the source.
    unsafe { bpf_probe_read_user(to.cast(), size_of::<T>() as u32, address as *const c_void) == 0 }
}
