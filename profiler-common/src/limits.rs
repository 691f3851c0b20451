//! Bounds of the kernel side. Documentation and messages take their figures from here.

/// Most user frames of one stack; a deeper stack keeps its innermost frames and ends with [`DepthLimit`](crate::stack::StackEnd::DepthLimit).
pub const MAX_USER_FRAMES: u32 = 512;

/// Most kernel frames of one stack: the default of `kernel.perf_event_max_stack`, above which `bpf_get_stack` refuses the buffer.
pub const MAX_KERNEL_FRAMES: u32 = 127;

/// Slots tried before a sample counts as lost because its table is full.
pub const MAX_PROBES: u32 = 32;

/// Most processes or threads that are followed at the same time.
pub const MAX_FOLLOWED: u32 = 65_536;

/// Tables a CPU writes in turn: one is filled while the other is drained.
pub const GENERATIONS: u32 = 2;

/// Length of a task's command name with its closing NUL (`TASK_COMM_LEN` in `include/linux/sched.h`).
pub const COMM_LEN: usize = 16;
