//! Following processes and threads: in the kernel at fork, before a child runs its first instruction.

use aya_ebpf::{helpers::generated::bpf_get_current_pid_tgid, programs::RawTracePointContext};
use profiler_common::config::target;

use crate::{
    config::config,
    kernel_memory::{KernelAddress, read_u32, read_u64},
    maps::FOLLOWED,
    tally,
};

/// `sched_process_fork(parent, child)`, in the context of the parent and before the child can run.
#[inline(always)]
pub(crate) fn fork(ctx: &RawTracePointContext) -> i32 {
    if config!(follow) == 0 {
        return 0;
    }
    // SAFETY: the helper takes nothing.
    let parent = unsafe { bpf_get_current_pid_tgid() };
    let child: KernelAddress = ctx.arg(1);
    let (parent_id, child_id) = if by_thread() {
        (parent as u32, read_u32(child, config!(offsets.pid)))
    } else {
        ((parent >> 32) as u32, read_u32(child, config!(offsets.tgid)))
    };
    // A new thread of a followed process is followed already.
    if parent_id != child_id && FOLLOWED.get_ptr(parent_id).is_some() {
        follow(child_id);
    }
    0
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
    0
}

/// `sched_process_exit(task)`: the thread is gone; with the last one, the process.
#[inline(always)]
pub(crate) fn exit(ctx: &RawTracePointContext) -> i32 {
    let task: KernelAddress = ctx.arg(0);
    if by_thread() {
        let _ = FOLLOWED.remove(read_u32(task, config!(offsets.pid)));
        return 0;
    }
    let signal = read_u64(task, config!(offsets.signal));
    if read_u32(signal, config!(offsets.signal_live)) == 0 {
        let _ = FOLLOWED.remove(read_u32(task, config!(offsets.tgid)));
    }
    0
}

#[inline(always)]
fn by_thread() -> bool {
    config!(target) == target::THREADS
}

#[inline(always)]
fn follow(id: u32) {
    if FOLLOWED.insert(id, 1, 0).is_err() {
        tally::count_not_followed();
    }
}
