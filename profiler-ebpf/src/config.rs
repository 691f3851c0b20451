//! The configuration that userspace writes before loading.

use profiler_common::config::{Config, TaskOffsets};
use profiler_common::sample::TableLayout;

/// Overwritten in the object's read-only data by the loader.
#[unsafe(no_mangle)]
static CONFIG: Config = Config {
    cgroup_id: 0,
    address_mask: 0,
    comm: [0; 2],
    target: 0,
    cgroup_level: 0,
    filter_comm: 0,
    follow: 0,
    idle: 0,
    user_stacks: 0,
    kernel_stacks: 0,
    kernel_mode_only: 0,
    user_frame_limit: 0,
    tables: TableLayout { slots: 0, frames: 0 },
    offsets: TaskOffsets { mm: 0, pid: 0, tgid: 0, self_exec_id: 0, signal: 0, signal_live: 0 },
    padding: 0,
};

/// Reads one field of the configuration, hiding its value from the compiler but not from the verifier.
macro_rules! config {
    ($($field:tt).+) => {
        // SAFETY: the field is part of an initialised static.
        unsafe { core::ptr::read_volatile(&raw const $crate::config::get().$($field).+) }
    };
}
pub(crate) use config;

#[inline(always)]
pub(crate) fn get() -> &'static Config {
    &CONFIG
}
