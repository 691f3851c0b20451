//! The slot of a sample table, and where slots and frames lie in the maps.

use crate::limits::{COMM_LEN, GENERATIONS, MAX_EVENTS};

/// Samples of one task with one stack, in one generation of one CPU's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SampleSlot {
    /// Hash of all that tells slots apart; 0 means free.
    pub hash: u64,
    /// Time of the first of these samples, nanoseconds of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the sampling periods, in the event's own unit.
    pub weight: u64,
    /// Process id (thread group) in bpfprof's pid namespace.
    pub tgid: u32,
    /// Thread id in bpfprof's pid namespace.
    pub tid: u32,
    /// Number of program images this task has run (`task_struct.self_exec_id`, low half): tells samples before and after an exec apart.
    pub exec_id: u32,
    /// Index of the sampling event.
    pub event: u16,
    /// A [`StackEnd`](crate::stack::StackEnd).
    pub end: u8,
    /// 1 when the samples were taken in user mode.
    pub user_mode: u8,
    /// Command name of the thread, NUL-terminated.
    pub comm: [u8; COMM_LEN],
    /// Index of the first frame in the frame store.
    pub frames_at: u32,
    /// User frames, innermost first.
    pub user_frames: u16,
    /// Kernel frames, innermost first; they follow the user frames.
    pub kernel_frames: u16,
}

/// Size and place of the tables of all CPUs in the maps.
///
/// Each CPU owns [`GENERATIONS`] tables and frame stores. Only that CPU's sample program writes them; the kernel never nests such
/// programs on one CPU (`bpf_prog_active`), so plain stores suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TableLayout {
    /// Slots of one table, a power of two.
    pub slots: u32,
    /// Frames of one frame store.
    pub frames: u32,
}

impl TableLayout {
    /// Number of the table of this CPU and generation; also the index of its fill mark.
    #[inline(always)]
    #[must_use]
    pub const fn table(cpu: u32, generation: u32) -> u32 {
        cpu * GENERATIONS + generation
    }

    /// Index of the first slot of a table.
    #[inline(always)]
    #[must_use]
    pub const fn first_slot(&self, table: u32) -> u32 {
        table * self.slots
    }

    /// Index of the first frame of a table's frame store.
    #[inline(always)]
    #[must_use]
    pub const fn first_frame(&self, table: u32) -> u32 {
        table * self.frames
    }
}

/// Index of the period that an event began at its last sample on a CPU, in the array of periods.
#[inline(always)]
#[must_use]
pub const fn period_index(cpu: u32, event: u32) -> u32 {
    cpu * MAX_EVENTS + event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_whole_words() {
        assert_eq!(size_of::<SampleSlot>(), 72);
        assert_eq!(align_of::<SampleSlot>(), 8);
    }

    #[test]
    fn tables_do_not_overlap() {
        let layout = TableLayout { slots: 64, frames: 4096 };
        assert_eq!(layout.first_slot(TableLayout::table(3, 1)), 7 * 64);
        assert_eq!(layout.first_frame(TableLayout::table(0, 1)), 4096);
    }
}
