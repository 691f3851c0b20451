//! The maps. Userspace sets the size of all but the scratch space before loading.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap, PerCpuArray},
};
use profiler_common::{
    limits::{MAX_FOLLOWED, MAX_KERNEL_FRAMES},
    sample::SampleSlot,
    tally::state,
};

/// Sample tables: see `TableLayout`.
#[map]
pub(crate) static SLOTS: Array<SampleSlot> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Frame stores: see `TableLayout`.
#[map]
pub(crate) static FRAMES: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Frames in use in each frame store. Userspace sets it back to 0 when the store is drained.
#[map]
pub(crate) static FRAMES_USED: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Fates of samples on each CPU: see `tally`.
#[map]
pub(crate) static TALLY: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// What userspace and programs tell each other while sampling: see `tally::state`.
#[map]
pub(crate) static STATE: Array<u64> = Array::with_max_entries(state::WORDS, BPF_F_MMAPABLE);

/// The followed tasks, by thread group id or thread id.
#[map]
pub(crate) static FOLLOWED: HashMap<u32, u32> = HashMap::with_max_entries(MAX_FOLLOWED, 0);

/// Words that a kernel stack needs at most, rounded up to a power of two.
pub(crate) const KERNEL_STACK_WORDS: usize = (MAX_KERNEL_FRAMES as usize).next_power_of_two();

/// Place for one kernel stack: too large for the BPF stack.
#[map]
pub(crate) static KERNEL_STACK: PerCpuArray<[u64; KERNEL_STACK_WORDS]> = PerCpuArray::with_max_entries(1, 0);
