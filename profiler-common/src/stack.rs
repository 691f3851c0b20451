//! How the walk of a user stack ended.

/// Why a user stack has no further frame.
///
/// Every sample carries one, so that a truncated stack is never taken for a complete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StackEnd {
    /// The call-frame information says that there is no caller: the first function of a thread.
    Root = 0,
    /// A zero frame pointer or return address, where the first function of a thread ends the chain.
    ChainEnd = 1,
    /// The task has no user memory: a kernel thread, a process that is exiting, or one whose old program `execve` has thrown away and whose
    /// new one has not begun.
    NoUserMemory = 2,
    /// The user side was not asked for.
    NotWanted = 3,
    /// The limit of frames was reached; the innermost ones are kept.
    DepthLimit = 4,
    /// The frame pointer is misaligned or does not move towards the root: code built without frame pointers.
    BadFramePointer = 5,
    /// The memory of a frame could not be read: not resident, or the frame is not one.
    Unreadable = 6,
    /// The return address is no user address.
    BadReturnAddress = 7,
    /// A 32-bit program on a 64-bit kernel; only its innermost frame is kept.
    Compat32 = 8,
    /// The code lies in no mapping of a file: made at run time, or mapped a moment ago. No frame pointer led on.
    NoMapping = 9,
    /// The object has no unwind table yet. No frame pointer led on.
    NoTable = 10,
    /// The table has no rule for the place. No frame pointer led on.
    NoRule = 11,
    /// The kernel gave the walk no place to work in. Not seen in practice.
    NoScratch = 12,
}

impl StackEnd {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Root,
        Self::ChainEnd,
        Self::NoUserMemory,
        Self::NotWanted,
        Self::DepthLimit,
        Self::BadFramePointer,
        Self::Unreadable,
        Self::BadReturnAddress,
        Self::Compat32,
        Self::NoMapping,
        Self::NoTable,
        Self::NoRule,
        Self::NoScratch,
    ];

    /// The reason with this number; `None` when no reason has it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// What stood in for call-frame information somewhere in a stack: frame pointers, which code may use for anything, so callers may be missing
/// or wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Guess {
    /// Nothing had to.
    #[default]
    None = 0,
    /// In code of no known file: JIT code.
    Jit = 1,
    /// In code that its object's call-frame information does not describe, or not in a way that rows can.
    NoRule = 2,
    /// In an object whose table was still to come.
    NoTable = 3,
}

impl Guess {
    const ALL: [Self; 4] = [Self::None, Self::Jit, Self::NoRule, Self::NoTable];
}

/// Bits of a [`StackEnd`] in a byte that holds a [`Guess`] too.
const END_BITS: u32 = 5;

impl StackEnd {
    /// The byte that says how a stack ended, and what was guessed on the way.
    #[inline(always)]
    #[must_use]
    pub const fn with_guess(self, guess: Guess) -> u8 {
        self as u8 | (guess as u8) << END_BITS
    }

    /// What such a byte says; `None` for a byte that was not made so.
    #[must_use]
    pub fn and_guess(byte: u8) -> Option<(Self, Guess)> {
        let end = Self::from_number(byte & ((1 << END_BITS) - 1))?;
        Some((end, Guess::ALL.get(usize::from(byte >> END_BITS)).copied()?))
    }
}

#[cfg(test)]
mod tests {
    use super::{Guess, StackEnd};

    #[test]
    fn ends_and_guesses_share_a_byte() {
        for end in StackEnd::ALL {
            for guess in Guess::ALL {
                assert_eq!(StackEnd::and_guess(end.with_guess(guess)), Some((end, guess)));
            }
        }
        assert_eq!(StackEnd::and_guess(31), None);
        assert_eq!(StackEnd::and_guess(4 << 5), None);
    }

    #[test]
    fn numbers_and_reasons_agree() {
        for (number, end) in StackEnd::ALL.into_iter().enumerate() {
            assert_eq!(end as usize, number);
            assert_eq!(StackEnd::from_number(end as u8), Some(end));
        }
        assert_eq!(StackEnd::from_number(StackEnd::ALL.len() as u8), None);
    }
}
