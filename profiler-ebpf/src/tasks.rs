//! Following processes and threads: in the kernel at fork, before a child runs its first instruction.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::generated::{bpf_get_current_task_btf, bpf_task_pt_regs},
    programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use profiler_common::config::{target, walk};

use crate::{
    config::config,
    counters, filter, ids,
    kernel_memory::{KernelAddress, read_u32, read_u64},
    mappings,
    maps::FOLLOWED,
    tally,
};

/// `sched_process_fork(parent, child)`, in the context of the parent and before the child can run.
#[inline(always)]
pub(crate) fn fork(ctx: &RawTracePointContext) -> i32 {
    let (parent, child) = (ids::current(), ids::of(ctx.arg(1)));
    // A new thread of a followed process is followed already.
    let (parent_id, child_id) = if by_thread() { (parent.tid, child.tid) } else { (parent.tgid, child.tgid) };
    if config!(follow) != 0 && by_map() && parent_id != child_id && FOLLOWED.get_ptr(parent_id).is_some() {
        follow(child_id);
        if config!(log) != 0 {
            debug!(ctx, "{} has the child {}", parent_id, child_id);
        }
    }
    if parent.tgid != child.tgid {
        mappings::inherit(parent.tgid, child.tgid);
    }
    0
}

/// `sched_process_exec(task, old_pid, bprm)`: a thread that is not the leader takes the leader's id.
#[inline(always)]
pub(crate) fn exec(ctx: &RawTracePointContext) -> i32 {
    // The old id is that of the initial namespace and cannot be told in another.
    if by_thread() && config!(namespaced) == 0 {
        let old: u32 = ctx.arg(1);
        let new = ids::current().tid;
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

/// Notes the mapping of the program that the current task has just executed, and of its loader, where it will begin. Their files are asked
/// for now, so that the first sample finds the tables of a program that userspace knows.
#[inline(always)]
fn note_program() {
    let ids::Ids { tgid, tid } = ids::current();
    if !filter::belongs(tgid, tid) {
        return;
    }
    mappings::announce_program(tgid);
    // SAFETY: the helper takes nothing.
    let task: *mut c_void = unsafe { bpf_get_current_task_btf() }.cast();
    let exec_id = read_u64(task as u64, config!(offsets.self_exec_id)) as u32;
    let mm = read_u64(task as u64, config!(offsets.mm));
    note(task, tgid, exec_id, read_u64(mm, config!(mapping_offsets.start_code)));
    // A program with a loader begins in the loader.
    // SAFETY: the pointer is the current task's, from `bpf_get_current_task_btf`.
    let registers = unsafe { bpf_task_pt_regs(task.cast()) } as KernelAddress;
    note(task, tgid, exec_id, read_u64(registers, config!(offsets.saved_pc)));
}

#[inline(always)]
fn note(task: *mut c_void, tgid: u32, exec_id: u32, address: u64) {
    if let Some(mapping) = mappings::discover(task, tgid, exec_id, address) {
        mappings::expect(tgid, &mapping);
    }
}

/// `sched_process_exit(task)`: the thread is gone; with the last one, the process.
#[inline(always)]
pub(crate) fn exit(ctx: &RawTracePointContext) -> i32 {
    if config!(counters) != 0 {
        counters::settle();
    }
    let task: KernelAddress = ctx.arg(0);
    let ids = ids::of(task);
    if by_thread() {
        let _ = FOLLOWED.remove(ids.tid);
    }
    let signal = read_u64(task, config!(offsets.signal));
    if read_u32(signal, config!(offsets.signal_live)) == 0 {
        if !by_thread() && FOLLOWED.remove(ids.tgid).is_ok() && config!(log) != 0 {
            debug!(ctx, "{} has ended", ids.tgid);
        }
        mappings::forget(ids.tgid);
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
