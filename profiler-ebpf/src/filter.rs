//! Which tasks are sampled: the first and cheapest step.

use aya_ebpf::helpers::generated::bpf_get_current_ancestor_cgroup_id;
use profiler_common::config::target;

use crate::{config::config, maps::FOLLOWED, sample::Task};

/// Whether this task is one of the targets.
#[inline(always)]
pub(crate) fn is_target(task: &Task) -> bool {
    let outside = config!(namespaced) != 0 && task.tgid == 0;
    if outside || !belongs(task) {
        return false;
    }
    config!(filter_comm) == 0 || task.comm == config!(comm)
}

#[inline(always)]
fn belongs(task: &Task) -> bool {
    match config!(target) {
        target::PROCESSES => followed(task.tgid),
        target::THREADS => followed(task.tid),
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
