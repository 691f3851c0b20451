//! The maps. Userspace sets the size of all but the scratch space before loading.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    bindings::bpf_perf_event_value,
    btf_maps,
    macros::{btf_map, map},
    maps::{Array, HashMap, PerCpuArray, PerfEventArray, RingBuf},
};
use profiler_common::{
    counters::Readings,
    limits::{
        CHUNK_ROWS, MAX_CHUNKS, MAX_FILES, MAX_FOLLOWED, MAX_KERNEL_FRAMES, MAX_PROCESSES, MAX_REGIONS,
        MAX_ROW_PAGES,
    },
    mapping::{FileEntry, FileKey, ProcessMappings},
    sample::SampleSlot,
    tally::state,
};

use crate::unwind::Walk;

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

/// The events of counters that are read at samples, by CPU: a map for each counter, since aya makes none larger than the number of CPUs.
macro_rules! counter_maps {
    ($($name:ident)*) => {$(
        #[map]
        pub(crate) static $name: PerfEventArray<u64> = PerfEventArray::new(0);
    )*};
}
counter_maps!(COUNTER_0 COUNTER_1 COUNTER_2 COUNTER_3 COUNTER_4 COUNTER_5 COUNTER_6 COUNTER_7);

/// Room to read what the sampled event itself has counted: too large for the BPF stack.
#[map]
pub(crate) static OWN_COUNT: PerCpuArray<bpf_perf_event_value> = PerCpuArray::with_max_entries(1, 0);

/// Periods that have begun, or what an event had counted at its last sample: see `sample::period_index`.
#[map]
pub(crate) static PERIODS: Array<u64> = Array::with_max_entries(1, 0);

/// The last readings of counters, by CPU.
#[map]
pub(crate) static READINGS: Array<Readings> = Array::with_max_entries(1, 0);

/// What they counted in the samples of each slot: see `counters::increase_index`.
#[map]
pub(crate) static INCREASES: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// What they counted outside of samples: see `counters::residual_index`.
#[map]
pub(crate) static RESIDUALS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The followed tasks, by thread group id or thread id.
#[map]
pub(crate) static FOLLOWED: HashMap<u32, u32> = HashMap::with_max_entries(MAX_FOLLOWED, 0);

/// Words that a kernel stack needs at most, rounded up to a power of two.
pub(crate) const KERNEL_STACK_WORDS: usize = (MAX_KERNEL_FRAMES as usize).next_power_of_two();

/// Place for one kernel stack: too large for the BPF stack.
#[map]
pub(crate) static KERNEL_STACK: PerCpuArray<[u64; KERNEL_STACK_WORDS]> = PerCpuArray::with_max_entries(1, 0);

/// Executable mappings, by thread group id.
#[map]
pub(crate) static PROCESSES: HashMap<u32, ProcessMappings> = HashMap::with_max_entries(MAX_PROCESSES, 0);

/// Executable mappings by [region](profiler_common::mapping::region_key), of processes that have more than there is room for in `PROCESSES`.
#[map]
pub(crate) static REGIONS: HashMap<u64, ProcessMappings> = HashMap::with_max_entries(MAX_REGIONS, 0);

/// A process without mappings, to insert: too large for the BPF stack. Never written.
#[map]
pub(crate) static NO_MAPPINGS: PerCpuArray<ProcessMappings> = PerCpuArray::with_max_entries(1, 0);

/// What is known of files. Userspace answers what programs ask for in `FILE_REQUESTS`.
#[map]
pub(crate) static FILES: HashMap<FileKey, FileEntry> = HashMap::with_max_entries(MAX_FILES, 0);

/// Files that samples hit and nothing is known of.
#[map]
pub(crate) static FILE_REQUESTS: RingBuf = RingBuf::with_byte_size(64 << 10, 0);

/// Index of unwind rows: see `RowPage`. Userspace fills it through memory.
#[map]
pub(crate) static ROW_PAGES: Array<u64> = Array::with_max_entries(MAX_ROW_PAGES, BPF_F_MMAPABLE);

/// The walk that is under way on this CPU.
#[map]
pub(crate) static WALK: PerCpuArray<Walk> = PerCpuArray::with_max_entries(1, 0);

/// A chunk of unwind rows. Userspace fills it through memory.
pub(crate) type RowChunk = btf_maps::Array<u64, { CHUNK_ROWS as usize }, { BPF_F_MMAPABLE as usize }>;

/// Chunks of unwind rows, made as they are needed.
#[btf_map]
pub(crate) static ROW_CHUNKS: btf_maps::ArrayOfMaps<RowChunk, { MAX_CHUNKS as usize }> =
    btf_maps::ArrayOfMaps::new();
