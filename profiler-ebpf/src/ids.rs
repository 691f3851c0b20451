//! Ids of tasks as userspace sees them: in its own pid namespace.

use aya_ebpf::helpers::generated::{bpf_get_current_pid_tgid, bpf_get_current_task_btf};
use profiler_common::tally::state;

use crate::{
    config::config,
    kernel_memory::{KernelAddress, read_u32, read_u64},
    maps::STATE,
};

/// Ids of a task. Both are 0 for one that userspace's namespace does not show.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    /// Thread group id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
}

/// Size of `struct upid`: a number, then the namespace it belongs to.
const UPID_SIZE: u32 = 16;

/// Place of the namespace in it.
const UPID_NAMESPACE: u32 = 8;

/// Ids of the current task.
#[inline(always)]
pub(crate) fn current() -> Ids {
    if config!(namespaced) != 0 {
        // SAFETY: the helper takes nothing.
        return of(unsafe { bpf_get_current_task_btf() } as KernelAddress);
    }
    // SAFETY: the helper takes nothing.
    let id = unsafe { bpf_get_current_pid_tgid() };
    Ids { tgid: (id >> 32) as u32, tid: id as u32 }
}

/// Ids of a task.
#[inline(always)]
pub(crate) fn of(task: KernelAddress) -> Ids {
    if config!(namespaced) == 0 {
        return Ids {
            tgid: read_u32(task, config!(offsets.tgid)),
            tid: read_u32(task, config!(offsets.pid)),
        };
    }
    let signal = read_u64(task, config!(offsets.signal));
    let tgid = read_u64(signal, config!(offsets.signal_tgid));
    let tid = read_u64(task, config!(offsets.thread_pid));
    Ids { tgid: number(tgid), tid: number(tid) }
}

/// Notes the namespace of the current task, which is userspace's: it runs this program itself.
#[inline(always)]
pub(crate) fn learn_namespace() {
    // SAFETY: the helper takes nothing.
    let task = unsafe { bpf_get_current_task_btf() } as KernelAddress;
    let pid = read_u64(task, config!(offsets.thread_pid));
    let level = read_u32(pid, config!(offsets.pid_level));
    set(state::NAMESPACE_LEVEL, level.into());
    set(state::NAMESPACE, read_u64(upid(pid, level), UPID_NAMESPACE));
}

/// The number of a `struct pid` in userspace's namespace; 0 where it has none.
#[inline(always)]
fn number(pid: KernelAddress) -> u32 {
    let upid = upid(pid, get(state::NAMESPACE_LEVEL) as u32);
    // A task of an outer namespace has fewer numbers; what lies behind them names no such namespace.
    if read_u64(upid, UPID_NAMESPACE) == get(state::NAMESPACE) { read_u32(upid, 0) } else { 0 }
}

#[inline(always)]
fn upid(pid: KernelAddress, level: u32) -> KernelAddress {
    pid.wrapping_add(u64::from(config!(offsets.pid_numbers)) + u64::from(level) * u64::from(UPID_SIZE))
}

#[inline(always)]
fn get(word: u32) -> u64 {
    STATE.get(word).copied().unwrap_or(0)
}

#[inline(always)]
fn set(word: u32, value: u64) {
    if let Some(place) = STATE.get_ptr_mut(word) {
        // SAFETY: a map value is writable; userspace runs the program that calls this once, before any other.
        unsafe { *place = value };
    }
}
