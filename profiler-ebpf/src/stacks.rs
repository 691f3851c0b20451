//! Stacks: user frames, then kernel frames, written to the frame store as they are found.
//!
//! A stack is written behind the fill mark of its store. The mark moves only when the sample needs a new slot, so a stack that
//! is already known costs no room and is never copied.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext,
    helpers::generated::{bpf_get_stack, bpf_loop, bpf_task_pt_regs},
    programs::PerfEventContext,
};
use profiler_common::{
    config::walk,
    hash::WordHash,
    limits::{MAX_KERNEL_FRAMES, MAX_USER_FRAMES},
    stack::{Guess, StackEnd},
    tally::Fate,
};

use crate::{
    arch::Arch,
    config::config,
    kernel_memory::{self, KernelAddress},
    maps::{FRAMES, FRAMES_USED, KERNEL_STACK, KERNEL_STACK_WORDS},
    sample::Task,
    unwind,
};

/// The stacks of one sample, in the frame store.
pub(crate) struct Stacks {
    /// Index of the first frame.
    pub at: u32,
    /// Number of user frames.
    pub user_frames: u32,
    /// Number of kernel frames.
    pub kernel_frames: u32,
    /// How the user stack ended, and what was guessed, as a slot keeps it.
    pub end: u8,
    /// Hash of all frames.
    pub hash: WordHash,
}

/// Writes the stacks of this sample behind the fill mark of the table's frame store.
#[inline(always)]
pub(crate) fn collect<A: Arch>(
    ctx: &PerfEventContext,
    task: &Task,
    user_mode: bool,
    table: u32,
) -> Result<Stacks, Fate> {
    let Some(used) = FRAMES_USED.get(table) else {
        return Err(Fate::NoScratch);
    };
    let used = *used as u32;
    let room = config!(tables.frames);
    if used > room.wrapping_sub(MAX_USER_FRAMES + MAX_KERNEL_FRAMES) {
        return Err(Fate::FramesFull);
    }
    let mut cursor = Cursor { at: table * room + used, hash: WordHash::EMPTY };
    let at = cursor.at;
    let (end, guess) = user_stack::<A>(ctx, task, user_mode, &mut cursor);
    let user_frames = cursor.at - at;
    if !user_mode && config!(kernel_stacks) != 0 {
        kernel_stack(ctx, &mut cursor)?;
    }
    Ok(Stacks {
        at,
        user_frames,
        kernel_frames: cursor.at - at - user_frames,
        end: end.with_guess(guess),
        hash: cursor.hash,
    })
}

/// Makes the frames of a stack permanent.
#[inline(always)]
pub(crate) fn keep(table: u32, stacks: &Stacks) {
    if let Some(used) = FRAMES_USED.get_ptr_mut(table) {
        // SAFETY: the mark belongs to this CPU, and sample programs do not nest on a CPU.
        unsafe { *used += u64::from(stacks.user_frames + stacks.kernel_frames) };
    }
}

/// Where the next frame goes, and the hash of those before.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    at: u32,
    hash: WordHash,
}

impl Cursor {
    /// Writes a frame.
    #[inline(always)]
    pub(crate) fn push(&mut self, address: u64) {
        if let Some(frame) = FRAMES.get_ptr_mut(self.at) {
            // SAFETY: the store belongs to this CPU, and sample programs do not nest on a CPU.
            unsafe { *frame = address };
            self.at += 1;
            self.hash = self.hash.add(address);
        }
    }
}

#[inline(always)]
fn user_stack<A: Arch>(
    ctx: &PerfEventContext,
    task: &Task,
    user_mode: bool,
    cursor: &mut Cursor,
) -> (StackEnd, Guess) {
    let unguessed = |end| (end, Guess::None);
    if config!(walk) == walk::NONE {
        return unguessed(StackEnd::NotWanted);
    }
    let ctx = ctx.as_ptr() as *const u8;
    let registers = if user_mode {
        if let Some(others) = unwind::others() {
            A::others(ctx, others);
        }
        A::registers(ctx)
    } else {
        let mm = kernel_memory::read_u64(task.pointer as u64, config!(offsets.mm));
        // While `execve` sets up a new program, the old one's registers are still saved and its stack is gone. The address of the code
        // is the last that it fills in (`load_elf_binary` in `fs/binfmt_elf.c`); without memory there is none to read.
        if kernel_memory::read_u64(mm, config!(mapping_offsets.start_code)) == 0 {
            return unguessed(StackEnd::NoUserMemory);
        }
        // SAFETY: the pointer is the current task's, from `bpf_get_current_task_btf`.
        let saved = unsafe { bpf_task_pt_regs(task.pointer.cast()) } as KernelAddress;
        if let Some(others) = unwind::others() {
            A::saved_others(saved, others);
        }
        A::saved_registers(saved)
    };
    // Workers of io_uring share a process's memory but never ran user code.
    if registers.pc == 0 {
        return unguessed(StackEnd::NoUserMemory);
    }
    if registers.compat {
        cursor.push(registers.pc);
        return unguessed(StackEnd::Compat32);
    }
    unwind::walk::<A>(task, registers, cursor)
}

struct Copy {
    cursor: Cursor,
    len: u32,
}

#[inline(always)]
fn kernel_stack(ctx: &PerfEventContext, cursor: &mut Cursor) -> Result<(), Fate> {
    let Some(scratch) = KERNEL_STACK.get_ptr_mut(0) else {
        return Err(Fate::NoScratch);
    };
    // SAFETY: the scratch space is a map value of this size, and sample programs do not nest on a CPU.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), scratch.cast(), MAX_KERNEL_FRAMES * 8, 0) };
    if bytes <= 0 {
        return Ok(());
    }
    let mut copy = Copy { cursor: *cursor, len: bytes as u32 / 8 };
    // SAFETY: the callback gets the address of `copy`, which outlives the loop.
    unsafe { bpf_loop(MAX_KERNEL_FRAMES, copy_step as *mut c_void, (&raw mut copy).cast(), 0) };
    *cursor = copy.cursor;
    Ok(())
}

/// Copies one kernel frame; 1 ends the loop.
unsafe extern "C" fn copy_step(index: u32, copy: *mut c_void) -> i64 {
    // SAFETY: `kernel_stack` passes its own local.
    let copy = unsafe { &mut *copy.cast::<Copy>() };
    if index >= copy.len {
        return 1;
    }
    let Some(scratch) = KERNEL_STACK.get_ptr(0) else {
        return 1;
    };
    // The mask changes nothing, but it is a bound that the verifier sees.
    let index = index as usize & (KERNEL_STACK_WORDS - 1);
    // SAFETY: the index is below the length of the scratch space.
    let address = unsafe { *scratch.cast::<u64>().wrapping_add(index) };
    copy.cursor.push(address);
    0
}
