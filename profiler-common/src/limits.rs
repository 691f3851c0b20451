//! Bounds of the kernel side. Documentation and messages take their figures from here.

/// Most user frames of one stack; a deeper stack keeps its innermost frames and ends with [`DepthLimit`](crate::stack::StackEnd::DepthLimit).
pub const MAX_USER_FRAMES: u32 = 512;

/// Most user frames where a kernel refuses the program for [`MAX_USER_FRAMES`]: the default of `kernel.perf_event_max_stack`.
pub const FEWER_USER_FRAMES: u32 = 127;

/// Most kernel frames of one stack: the default of `kernel.perf_event_max_stack`, above which `bpf_get_stack` refuses the buffer.
pub const MAX_KERNEL_FRAMES: u32 = 127;

/// Slots tried before a sample counts as lost because its table is full.
pub const MAX_PROBES: u32 = 32;

/// Most processes or threads that are followed at the same time.
pub const MAX_FOLLOWED: u32 = 65_536;

/// Most processes whose mappings are known at the same time.
pub const MAX_PROCESSES: u32 = 8192;

/// Most [regions](crate::mapping::region) whose mappings are known: of processes with more mappings than are noted for each.
pub const MAX_REGIONS: u32 = 2048;

/// Most files whose objects are known.
pub const MAX_FILES: u32 = 16_384;

/// Rows in a chunk of unwind rows: 4 MiB.
pub const CHUNK_ROWS: u32 = 1 << 19;

/// Most chunks of unwind rows.
pub const MAX_CHUNKS: u32 = 256;

/// Pages of unwind rows, 64 KiB of code each, of all objects.
pub const MAX_ROW_PAGES: u32 = 1 << 17;

/// Tables a CPU writes in turn: one is filled while the other is drained.
pub const GENERATIONS: u32 = 2;

/// Length of a task's command name with its closing NUL (`TASK_COMM_LEN` in `include/linux/sched.h`).
pub const COMM_LEN: usize = 16;

/// Most events that are sampled at the same time.
pub const MAX_EVENTS: u32 = 16;

/// Most counters that are read at each sample.
pub const MAX_COUNTERS: u32 = 8;
