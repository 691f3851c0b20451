//! Which tasks are sampled: the first and cheapest step.

use aya_ebpf::helpers::generated::bpf_get_current_ancestor_cgroup_id;
use profiler_common::config::target;

use crate::{config::config, maps::FOLLOWED, sample::Task};

/// Whether this task is one of the targets.
#[inline(always)]
pub(crate) fn is_target(task: &Task) -> bool {
    belongs(task.tgid, task.tid) && (config!(filter_comm) == 0 || task.comm == config!(comm))
}

/// Whether the current task, which has these ids, is one of the targets whatever its name.
#[inline(always)]
pub(crate) fn belongs(tgid: u32, tid: u32) -> bool {
    let is_outside = config!(namespaced) != 0 && tgid == 0;
    !is_outside && matches(tgid, tid)
}

#[inline(always)]
fn matches(tgid: u32, tid: u32) -> bool {
    match config!(target) {
        target::PROCESSES => followed(tgid),
        target::THREADS => followed(tid),
        target::CGROUP => {
            let level = config!(cgroup_level) as i32;
            // SAFETY: the helper takes a number; it returns 0 where the task's cgroup is not that deep.
            let ancestor = unsafe { bpf_get_current_ancestor_cgroup_id(level) };
            ancestor == config!(cgroup_id)
        }
        _ => true,
    }
}

#[inline(always)]
fn followed(id: u32) -> bool {
    FOLLOWED.get_ptr(id).is_some()
}
