//! What becomes of every delivery of a sampling event: counted exactly once, by number and by weight.

use crate::limits::MAX_EVENTS;

/// The fate of one delivery of a sampling event on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Fate {
    /// In the tables.
    Kept = 0,
    /// The task is not a target.
    NotTarget = 1,
    /// The idle task of a CPU, which was not asked for.
    Idle = 2,
    /// In user mode, while only the kernel was asked for.
    UserModeLeftOut = 3,
    /// Lost: the table of this CPU had no free slot.
    TableFull = 4,
    /// Lost: the frame store of this CPU was full.
    FramesFull = 5,
    /// Lost: the kernel gave the program no place to work in. Not seen in practice.
    NoScratch = 6,
}

impl Fate {
    /// All fates, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Kept,
        Self::NotTarget,
        Self::Idle,
        Self::UserModeLeftOut,
        Self::TableFull,
        Self::FramesFull,
        Self::NoScratch,
    ];

    /// Whether such a sample was wanted and is gone.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::TableFull | Self::FramesFull | Self::NoScratch)
    }
}

/// Words of the tally array for one event on one CPU: samples and weight of each fate, padded to whole cache lines.
const WORDS_PER_EVENT: u32 = 16;

/// Words of the tally array for one CPU.
pub const WORDS_PER_CPU: u32 = WORDS_PER_EVENT * MAX_EVENTS;

const _: () = assert!(Fate::ALL.len() * 2 < WORDS_PER_EVENT as usize);

/// Index in the tally array of the number of samples of an event with this fate; the weight follows it. The event is below
/// [`MAX_EVENTS`].
#[inline(always)]
#[must_use]
pub const fn index(cpu: u32, event: u32, fate: Fate) -> u32 {
    cpu * WORDS_PER_CPU + event * WORDS_PER_EVENT + fate as u32 * 2
}

/// Index in the tally array of the processes or threads that could not be followed, because the map was full.
#[inline(always)]
#[must_use]
pub const fn not_followed_index(cpu: u32) -> u32 {
    cpu * WORDS_PER_CPU + Fate::ALL.len() as u32 * 2
}

/// Words of the shared state array.
pub mod state {
    /// The generation of tables that the programs write: 0 or 1.
    pub const GENERATION: u32 = 0;
    /// Depth of userspace's pid namespace below the initial one.
    pub const NAMESPACE_LEVEL: u32 = 1;
    /// Address of that namespace in the kernel.
    pub const NAMESPACE: u32 = 2;
    /// Number of words.
    pub const WORDS: u32 = 3;
}
