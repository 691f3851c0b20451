//! What userspace tells the BPF programs before they are loaded.

use crate::sample::TableLayout;

/// Configuration of the BPF programs: a read-only global, so that the verifier drops what is switched off.
///
/// Switches are `u32` with 0 for off, which makes every bit pattern of the struct valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Identifier of the cgroup whose tasks are targets, for [`target::CGROUP`].
    pub cgroup_id: u64,
    /// Bits of a return address that belong to the address; clears pointer authentication codes on aarch64.
    pub address_mask: u64,
    /// Command name that a thread must have, as two words in memory order.
    pub comm: [u64; 2],
    /// Which tasks are targets: a number of [`target`].
    pub target: u32,
    /// Depth of that cgroup below the root of its hierarchy (root: 0).
    pub cgroup_level: u32,
    /// Whether [`comm`](Self::comm) is compared.
    pub filter_comm: u32,
    /// Whether children and new threads of targets become targets.
    pub follow: u32,
    /// Whether samples of idle tasks count.
    pub idle: u32,
    /// How user stacks are walked: a number of [`walk`].
    pub walk: u32,
    /// Whether kernel stacks are taken.
    pub kernel_stacks: u32,
    /// Whether samples in user mode are left out.
    pub kernel_mode_only: u32,
    /// User frames kept of one stack, at most [`MAX_USER_FRAMES`](crate::limits::MAX_USER_FRAMES).
    pub user_frame_limit: u32,
    /// Size of the tables.
    pub tables: TableLayout,
    /// Where the kernel keeps what the programs read.
    pub offsets: TaskOffsets,
    /// As above, for mappings.
    pub mapping_offsets: MappingOffsets,
    /// Length of the kernel's virtual object in pages; 0 when there is none.
    pub vdso_pages: u32,
    /// Whether userspace runs in a pid namespace of its own, whose ids it is to be given.
    pub namespaced: u32,
    /// Whether the programs that follow tasks say what they do.
    pub log: u32,
    /// Events, by bit, whose samples carry the period that begins in place of the one that ended.
    pub late_periods: u32,
    /// Counters that are read at each sample of the main event, at most [`MAX_COUNTERS`](crate::limits::MAX_COUNTERS).
    pub counters: u32,
    /// Bits of an address inside a page of this kernel.
    pub page_shift: u32,
    /// Events, by bit, whose samples weigh what the event counted since the last one on that CPU: clocks, whose periods are random.
    pub counted_weights: u32,
}

const _: () = assert!(size_of::<Config>() == 4 * 8 + 44 * 4);

/// Byte offsets in the kernel's own structures, taken from its BTF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TaskOffsets {
    /// `task_struct.mm`
    pub mm: u32,
    /// `task_struct.pid`
    pub pid: u32,
    /// `task_struct.tgid`
    pub tgid: u32,
    /// `task_struct.self_exec_id`
    pub self_exec_id: u32,
    /// `task_struct.signal`
    pub signal: u32,
    /// `signal_struct.live`
    pub signal_live: u32,
    /// `signal_struct.pids[PIDTYPE_TGID]`
    pub signal_tgid: u32,
    /// `task_struct.thread_pid`
    pub thread_pid: u32,
    /// `pid.level`
    pub pid_level: u32,
    /// `pid.numbers`
    pub pid_numbers: u32,
    /// Program counter in `pt_regs`
    pub saved_pc: u32,
}

/// Byte offsets in the kernel's own structures that describe mappings, taken from its BTF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MappingOffsets {
    /// `vm_area_struct.vm_start`
    pub start: u32,
    /// `vm_area_struct.vm_end`
    pub end: u32,
    /// `vm_area_struct.vm_pgoff`
    pub file_page: u32,
    /// `vm_area_struct.vm_flags`
    pub flags: u32,
    /// `vm_area_struct.vm_file`
    pub file: u32,
    /// `file.f_inode`
    pub inode: u32,
    /// `inode.i_ino`
    pub inode_number: u32,
    /// `inode.i_size`
    pub inode_size: u32,
    /// Seconds of the inode's time of modification, which has changed its name often.
    pub inode_modified: u32,
    /// Nanoseconds of it.
    pub inode_modified_nanos: u32,
    /// `inode.i_sb`
    pub super_block: u32,
    /// `super_block.s_dev`
    pub device: u32,
    /// `mm_struct.context.vdso`
    pub vdso: u32,
    /// `mm_struct.start_code`
    pub start_code: u32,
    /// `vm_unmapped_area_info.length`
    pub area_length: u32,
}

/// Values of [`Config::walk`].
pub mod walk {
    /// No user stacks.
    pub const NONE: u32 = 0;
    /// By frame pointers.
    pub const FRAME_POINTER: u32 = 1;
    /// By compiled call-frame information, and by frame pointers where there is none.
    pub const AUTO: u32 = 2;
    /// By compiled call-frame information only.
    pub const TABLES: u32 = 3;
}

/// Values of [`Config::target`].
pub mod target {
    /// Every task.
    pub const ALL: u32 = 0;
    /// The processes in the map of followed tasks, by thread group id.
    pub const PROCESSES: u32 = 1;
    /// The threads in the map of followed tasks, by thread id.
    pub const THREADS: u32 = 2;
    /// The tasks of a cgroup and of the cgroups below it.
    pub const CGROUP: u32 = 3;
}
