//! Following processes and threads: in the kernel at fork, before a child runs its first instruction.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::generated::{bpf_get_current_pid_tgid, bpf_get_current_task_btf},
    programs::RawTracePointContext,
};
use profiler_common::config::{target, walk};

use crate::{
    config::config,
    kernel_memory::{KernelAddress, read_u32, read_u64},
    mappings,
    maps::FOLLOWED,
    tally,
};

/// `sched_process_fork(parent, child)`, in the context of the parent and before the child can run.
#[inline(always)]
pub(crate) fn fork(ctx: &RawTracePointContext) -> i32 {
    // SAFETY: the helper takes nothing.
    let parent = unsafe { bpf_get_current_pid_tgid() };
    let child: KernelAddress = ctx.arg(1);
    follow_child(parent, child);
    let (parents_tgid, childs_tgid) = ((parent >> 32) as u32, read_u32(child, config!(offsets.tgid)));
    if parents_tgid != childs_tgid {
        mappings::inherit(parents_tgid, childs_tgid);
    }
    0
}

#[inline(always)]
fn follow_child(parent: u64, child: KernelAddress) {
    if config!(follow) == 0 || !by_map() {
        return;
    }
    let (parent_id, child_id) = if by_thread() {
        (parent as u32, read_u32(child, config!(offsets.pid)))
    } else {
        ((parent >> 32) as u32, read_u32(child, config!(offsets.tgid)))
    };
    // A new thread of a followed process is followed already.
    if parent_id != child_id && FOLLOWED.get_ptr(parent_id).is_some() {
        follow(child_id);
    }
}

/// `sched_process_exec(task, old_pid, bprm)`: a thread that is not the leader takes the leader's id.
#[inline(always)]
pub(crate) fn exec(ctx: &RawTracePointContext) -> i32 {
    if by_thread() {
        let old: u32 = ctx.arg(1);
        // SAFETY: the helper takes nothing.
        let new = unsafe { bpf_get_current_pid_tgid() } as u32;
        if old != new && FOLLOWED.get_ptr(old).is_some() {
            let _ = FOLLOWED.remove(old);
            follow(new);
        }
    }
    if config!(walk) != walk::NONE {
        note_program();
    }
    0
}

/// Notes the mapping of the program that the current task has just executed, and of its loader, where it will begin.
#[inline(always)]
fn note_program() {
    // SAFETY: the helper takes nothing.
    let tgid = (unsafe { bpf_get_current_pid_tgid() } >> 32) as u32;
    if config!(target) == target::PROCESSES && FOLLOWED.get_ptr(tgid).is_none() {
        return;
    }
    // SAFETY: the helper takes nothing.
    let task: *mut c_void = unsafe { bpf_get_current_task_btf() }.cast();
    let exec_id = read_u64(task as u64, config!(offsets.self_exec_id)) as u32;
    let mm = read_u64(task as u64, config!(offsets.mm));
    mappings::discover(task, tgid, exec_id, read_u64(mm, config!(mapping_offsets.start_code)));
}

/// `sched_process_exit(task)`: the thread is gone; with the last one, the process.
#[inline(always)]
pub(crate) fn exit(ctx: &RawTracePointContext) -> i32 {
    let task: KernelAddress = ctx.arg(0);
    if by_thread() {
        let _ = FOLLOWED.remove(read_u32(task, config!(offsets.pid)));
    }
    let signal = read_u64(task, config!(offsets.signal));
    if read_u32(signal, config!(offsets.signal_live)) == 0 {
        let tgid = read_u32(task, config!(offsets.tgid));
        if !by_thread() {
            let _ = FOLLOWED.remove(tgid);
        }
        mappings::forget(tgid);
    }
    0
}

#[inline(always)]
fn by_thread() -> bool {
    config!(target) == target::THREADS
}

#[inline(always)]
fn by_map() -> bool {
    matches!(config!(target), target::PROCESSES | target::THREADS)
}

#[inline(always)]
fn follow(id: u32) {
    if FOLLOWED.insert(id, 1, 0).is_err() {
        tally::count_not_followed();
    }
}
