//! The walk of the user stack: by compiled call-frame information, by frame pointers where there is none.

use core::{ffi::c_void, marker::PhantomData};

use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_loop};
use profiler_common::{
    config::walk,
    frame::UserFrame,
    mapping::{FileEntry, FileKey, Mapping, NO_OBJECT},
    stack::{Guess, StackEnd},
    unwind::{
        Kept, Registers, frame_pointer,
        row::{Row, RowPage},
        search::{UnwindTables, find_row},
        step,
        window::{Window, Windowed},
    },
};

use crate::{
    arch::{Arch, OTHERS, OtherRegisters, UserRegisters},
    arithmetic,
    config::config,
    kernel_memory::{self, KernelAddress},
    mappings,
    maps::{ROW_CHUNKS, ROW_PAGES, RowChunk, WALK},
    sample::Task,
    stacks::Cursor,
    user_memory::{self, CurrentTask},
};

/// Where a walk is.
///
/// It lies in a map and not on the stack: there the verifier would know the values, and follow each combination of them.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    registers: Registers,
    cursor: Cursor,
    /// The mapping of the last frame: most callers lie in the same.
    mapping: Mapping,
    file: FileEntry,
    /// The one before it: the next often, when a library was called or calls back.
    former_mapping: Mapping,
    former_file: FileEntry,
    /// Room to exchange the two.
    spare_mapping: Mapping,
    spare_file: FileEntry,
    /// The part of the stack that was read last.
    window: Window,
    tgid: u32,
    exec_id: u32,
    /// Whether a mapping was looked up in the process already.
    searched: bool,
    /// Whether the program counter is that of the next instruction, and not a return address.
    exact: bool,
    /// Whether this is the innermost frame, of which all registers are known.
    innermost: bool,
    others: OtherRegisters,
    /// Code before a return address: here since Linux 6.1 gives a program and its callbacks 512 bytes of stack together.
    code: u64,
    /// What frame pointers stood in for so far.
    guess: Guess,
    end: StackEnd,
}

/// The place for the other registers of the innermost frame, to be filled before the walk.
///
/// Each of the two places that they come from has code of its own for that: were it shared, the verifier would refuse loads through a pointer
/// that may be either.
#[inline(always)]
pub(crate) fn others() -> Option<&'static mut OtherRegisters> {
    // SAFETY: the value belongs to this CPU, and sample programs do not nest on a CPU.
    WALK.get_ptr_mut(0).map(|walk| unsafe { &mut (*walk).others })
}

/// Writes the user frames of this task and says why there are no more, and what was guessed.
#[inline(always)]
pub(crate) fn walk<A: Arch>(task: &Task, registers: UserRegisters, cursor: &mut Cursor) -> (StackEnd, Guess) {
    let UserRegisters { pc, sp, fp, lr, bx, .. } = registers;
    let Some(walk) = WALK.get_ptr_mut(0) else {
        return (StackEnd::NoScratch, Guess::None);
    };
    // SAFETY: the value belongs to this CPU, and sample programs do not nest on a CPU.
    let walk = unsafe { &mut *walk };
    let bx = if A::HAS_OTHERS { Kept::Value(bx) } else { Kept::Unknown };
    walk.registers = Registers { pc, sp, fp, lr, bx };
    walk.cursor = *cursor;
    // Nobody looks at the file of a void mapping.
    walk.mapping.void();
    walk.former_mapping.void();
    walk.window.clear();
    walk.tgid = task.tgid;
    walk.exec_id = task.exec_id;
    walk.searched = false;
    walk.exact = true;
    walk.innermost = true;
    walk.guess = Guess::None;
    walk.end = StackEnd::DepthLimit;
    let limit = config!(user_frame_limit);
    let mut context = walk as *mut Walk;
    // SAFETY: the callback gets the address of `context`, which outlives the loop.
    unsafe { bpf_loop(limit, frame::<A> as *mut c_void, (&raw mut context).cast(), 0) };
    *cursor = walk.cursor;
    (walk.end, walk.guess)
}

/// Writes one frame and finds its caller; 1 ends the loop.
unsafe extern "C" fn frame<A: Arch>(_: u32, context: *mut c_void) -> i64 {
    // SAFETY: `walk` passes the address of its pointer.
    let walk = unsafe { *context.cast::<*mut Walk>() };
    // SAFETY: the value belongs to this CPU, and sample programs do not nest on a CPU.
    let walk = unsafe { &mut *walk };
    // A return address may belong to the next function; its call does not.
    let address = walk.registers.pc.wrapping_sub(if walk.exact { 0 } else { 1 });
    let mut offset = walk.mapping.file_offset(address);
    if offset.is_none() {
        offset = remap(walk, address);
    }
    let Some(offset) = offset else {
        walk.cursor.push(UserFrame::Address(address).encode());
        return by_frame_pointer::<A>(walk, StackEnd::NoMapping);
    };
    let object = walk.file.object;
    let frame =
        if object == NO_OBJECT { UserFrame::Address(address) } else { UserFrame::Object { object, offset } };
    walk.cursor.push(frame.encode());
    if config!(walk) == walk::FRAME_POINTER {
        return by_frame_pointer::<A>(walk, StackEnd::BadFramePointer);
    }
    if walk.file.pages == 0 {
        let reason =
            if walk.file.base_page == FileEntry::NO_RULES { StackEnd::NoRule } else { StackEnd::NoTable };
        return by_frame_pointer::<A>(walk, reason);
    }
    let row = find_row(&walk.file, offset, &KernelTables);
    let mut memory = Windowed::new(&mut walk.window, CurrentTask);
    let machine = (&A::SIGNAL_FRAME, config!(address_mask));
    let others = Innermost::<A> { others: &walk.others, known: walk.innermost, machine: PhantomData };
    match step::caller(row, &walk.registers, &others, machine, &mut memory) {
        Ok(caller) => {
            walk.registers = caller.registers;
            walk.exact = caller.interrupted;
            walk.innermost = false;
            0
        }
        Err(StackEnd::NoRule) => by_frame_pointer::<A>(walk, StackEnd::NoRule),
        Err(reason) => end(walk, reason),
    }
}

/// The other registers, as long as they are known.
struct Innermost<'w, A> {
    others: &'w OtherRegisters,
    known: bool,
    machine: PhantomData<A>,
}

impl<A: Arch> step::OtherRegisters for Innermost<'_, A> {
    #[inline(always)]
    fn get(&self, place: u8) -> Option<u64> {
        if A::HAS_OTHERS && self.known {
            self.others.get(usize::from(place) & (OTHERS - 1)).copied()
        } else {
            None
        }
    }
}

#[inline(always)]
fn end(walk: &mut Walk, reason: StackEnd) -> i64 {
    walk.end = reason;
    1
}

/// Follows the frame pointer. Where it leads nowhere, the walk ends for the reason that it was needed.
///
/// Where a table should say the way this is a guess, and the stack is marked so: code without a rule may use the register for anything.
/// From code of a file it is believed only if it leads behind a call, or to where the chain ends: a runtime may begin a thread by a return
/// address that it made up (Go's `goexit`). The name tells whether that is a root.
#[inline(always)]
fn by_frame_pointer<A: Arch>(walk: &mut Walk, reason: StackEnd) -> i64 {
    let by_tables = config!(walk) != walk::FRAME_POINTER;
    if config!(walk) == walk::TABLES {
        return end(walk, reason);
    }
    let mut memory = Windowed::new(&mut walk.window, CurrentTask);
    match frame_pointer::caller(&walk.registers, config!(address_mask), &mut memory) {
        Ok(caller) => {
            if by_tables {
                let is_file = !matches!(reason, StackEnd::NoMapping);
                if is_file && caller.fp != 0 && !is_behind_call::<A>(caller.pc, &mut walk.code) {
                    return end(walk, reason);
                }
                let guess = match reason {
                    StackEnd::NoTable => Guess::NoTable,
                    StackEnd::NoRule => Guess::NoRule,
                    _ => Guess::Jit,
                };
                if walk.guess < guess {
                    walk.guess = guess;
                }
            }
            walk.registers = caller;
            walk.exact = false;
            walk.innermost = false;
            0
        }
        Err(_) if by_tables => end(walk, reason),
        Err(why) => end(walk, why),
    }
}

/// Whether a call ends where this return address leads.
#[inline(always)]
fn is_behind_call<A: Arch>(pc: u64, code: &mut u64) -> bool {
    user_memory::read_into(pc.wrapping_sub(8), code) && A::ends_with_call(*code)
}

/// Finds the mapping that holds an address, and what is known of its file.
#[inline(always)]
fn remap(walk: &mut Walk, address: u64) -> Option<u64> {
    // `mem::swap` goes byte by byte through the stack, of which Linux 6.1 gives a program and its callbacks 512 bytes together.
    (walk.spare_mapping, walk.spare_file) = (walk.mapping, walk.file);
    (walk.mapping, walk.file) = (walk.former_mapping, walk.former_file);
    (walk.former_mapping, walk.former_file) = (walk.spare_mapping, walk.spare_file);
    if let Some(offset) = walk.mapping.file_offset(address) {
        return Some(offset);
    }
    walk.mapping = match mappings::find(walk.tgid, walk.exec_id, address) {
        Some(mapping) => mapping,
        None => match vdso(address) {
            Some(mapping) => mapping,
            None => discover(walk, address)?,
        },
    };
    walk.file = mappings::file_entry(walk.tgid, &walk.mapping);
    walk.mapping.file_offset(address)
}

/// Looks a mapping up in the process itself, once for each sample.
#[inline(always)]
fn discover(walk: &mut Walk, address: u64) -> Option<Mapping> {
    if walk.searched {
        return None;
    }
    walk.searched = true;
    // SAFETY: the helper takes nothing.
    let task = unsafe { bpf_get_current_task_btf() };
    mappings::discover(task.cast(), walk.tgid, walk.exec_id, address)
}

/// The mapping of the kernel's virtual object, if the address lies in it.
#[inline(always)]
fn vdso(address: u64) -> Option<Mapping> {
    // SAFETY: the helper takes nothing.
    let task = unsafe { bpf_get_current_task_btf() } as KernelAddress;
    let mm = kernel_memory::read_u64(task, config!(offsets.mm));
    let start = kernel_memory::read_u64(mm, config!(mapping_offsets.vdso));
    let mapping = Mapping::new(start, config!(vdso_pages), 0, FileKey::VDSO);
    if start != 0 && mapping.file_offset(address).is_some() { Some(mapping) } else { None }
}

/// The tables in the maps.
struct KernelTables;

impl UnwindTables for KernelTables {
    type Chunk = RowChunk;

    #[inline(always)]
    fn page(&self, index: u32) -> Option<RowPage> {
        ROW_PAGES.get(index).map(|&word| RowPage(word))
    }

    #[inline(always)]
    fn chunk(&self, number: u32) -> Option<&RowChunk> {
        ROW_CHUNKS.get(number)
    }

    #[inline(always)]
    fn row(chunk: &RowChunk, index: u32) -> Option<Row> {
        chunk.get(index).map(|&word| Row(word))
    }

    #[inline(always)]
    fn not_above(a: u32, b: u32) -> u32 {
        1 - arithmetic::sign(u64::from(b).wrapping_sub(u64::from(a))) as u32
    }
}
