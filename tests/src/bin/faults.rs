//! Touches memory for the first time, page by page, and spins as long without it.
//!
//! `faults N`: N page faults in `touch_pages`, none in `touch_nothing`.

use std::hint::black_box;
use std::ptr::null_mut;

use anyhow::{Context, Result};
use bpfprof_tests::cpu_time::{burn, thread_cpu_time};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

/// Pages that are mapped at a time, so that any N fits into memory.
const CHUNK: usize = 1024;

fn main() -> Result<()> {
    let mut pages: usize = std::env::args().nth(1).context("faults N")?.parse()?;
    while pages > 0 {
        let chunk = pages.min(CHUNK);
        let before = thread_cpu_time();
        touch_pages(chunk)?;
        touch_nothing(thread_cpu_time() - before);
        pages -= chunk;
    }
    Ok(())
}

#[inline(never)]
fn touch_pages(pages: usize) -> Result<()> {
    let length = pages * page_size();
    // SAFETY: the kernel chooses a place where nothing is.
    let memory =
        unsafe { mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
    // One fault a page, not one for a huge page of many.
    // SAFETY: the mapping is ours and has this length.
    unsafe { madvise(memory, length, Advice::LinuxNoHugepage) }?;
    for page in 0..pages {
        // SAFETY: the offset is less than the length of the mapping.
        let byte = unsafe { memory.cast::<u8>().add(page * page_size()) };
        // SAFETY: the byte is in the mapping, which is writable and used by nobody else.
        unsafe { byte.write_volatile(1) };
    }
    // SAFETY: the mapping is ours, and no reference into it is left.
    unsafe { munmap(memory, length) }?;
    Ok(())
}

#[inline(never)]
fn touch_nothing(time: std::time::Duration) {
    black_box(burn::<0x0404_0407>(time));
}
