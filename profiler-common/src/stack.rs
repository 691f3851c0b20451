//! How the walk of a user stack ended.

/// Why a user stack has no further frame.
///
/// Every sample carries one, so that a cut stack is never taken for a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StackEnd {
    /// The chain ended where the first function of a thread ends it: a zero frame pointer or return address.
    ChainEnd = 0,
    /// The task has no user memory: a kernel thread, or a process that is exiting.
    NoUserMemory = 1,
    /// The user side was not asked for.
    NotWanted = 2,
    /// The limit of frames was reached; the innermost ones are kept.
    DepthLimit = 3,
    /// The frame pointer is misaligned or does not move towards the root: code built without frame pointers.
    BadFramePointer = 4,
    /// The memory of a frame could not be read: not resident, or the frame pointer is not one.
    Unreadable = 5,
    /// The return address is no user address.
    BadReturnAddress = 6,
    /// A 32-bit program on a 64-bit kernel; only its innermost frame is kept.
    Compat32 = 7,
}

impl StackEnd {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::ChainEnd,
        Self::NoUserMemory,
        Self::NotWanted,
        Self::DepthLimit,
        Self::BadFramePointer,
        Self::Unreadable,
        Self::BadReturnAddress,
        Self::Compat32,
    ];

    /// The reason with this number; `None` when no reason has it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::StackEnd;

    #[test]
    fn numbers_and_reasons_agree() {
        for (number, end) in StackEnd::ALL.into_iter().enumerate() {
            assert_eq!(end as usize, number);
            assert_eq!(StackEnd::from_number(end as u8), Some(end));
        }
        assert_eq!(StackEnd::from_number(StackEnd::ALL.len() as u8), None);
    }
}
