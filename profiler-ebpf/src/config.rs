//! The configuration that userspace writes before loading.

use profiler_common::config::{Config, MappingOffsets, TaskOffsets};
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
    walk: 0,
    kernel_stacks: 0,
    kernel_mode_only: 0,
    user_frame_limit: 0,
    tables: TableLayout { slots: 0, frames: 0 },
    offsets: TaskOffsets {
        mm: 0,
        pid: 0,
        tgid: 0,
        self_exec_id: 0,
        signal: 0,
        signal_live: 0,
        signal_tgid: 0,
        thread_pid: 0,
        pid_level: 0,
        pid_numbers: 0,
        saved_pc: 0,
    },
    mapping_offsets: MappingOffsets {
        start: 0,
        end: 0,
        file_page: 0,
        flags: 0,
        file: 0,
        inode: 0,
        inode_number: 0,
        inode_size: 0,
        inode_modified: 0,
        inode_modified_nanos: 0,
        super_block: 0,
        device: 0,
        vdso: 0,
        start_code: 0,
        area_length: 0,
    },
    vdso_pages: 0,
    namespaced: 0,
    log: 0,
    late_periods: 0,
    counters: 0,
    page_shift: 0,
    counted_weights: 0,
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
