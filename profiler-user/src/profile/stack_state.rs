//! Whether a user stack is whole, and if not, why.

use profiler_common::stack::{Guess, StackEnd};

/// The state of the user side of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackState {
    /// It reaches the first function of its thread.
    Whole,
    /// It seems to, but frame pointers stood in for call-frame information: callers may be missing or wrong.
    Guessed(GuessReason),
    /// There is no user side, or it was not asked for.
    NoUserSide,
    /// Callers are missing.
    Cut(CutReason),
}

/// Why callers are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CutReason {
    /// The chain of frame pointers breaks off in code that was built without them.
    FramePointerLost,
    /// The stack is deeper than the limit.
    DepthLimit,
    /// Stack memory was not resident or not readable.
    Unreadable,
    /// A return address pointed to no code.
    BadReturnAddress,
    /// A 32-bit program.
    Compat32,
    /// Code that belongs to no file, or to one mapped a moment ago.
    NoMapping,
    /// An object without unwind table.
    NoTable,
    /// Code that its object's call-frame information does not describe.
    NoRule,
}

/// Why frame pointers stood in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuessReason {
    /// Code of no known file.
    Jit,
    /// Code that its object's call-frame information does not describe.
    NoRule,
}

impl GuessReason {
    /// The reason in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Jit => "in code of no known file",
            Self::NoRule => "in code without call-frame information",
        }
    }
}

impl CutReason {
    /// The reason in words, where so many frames of a stack are kept.
    #[must_use]
    pub fn describe(self, frame_limit: u32) -> String {
        match self {
            Self::FramePointerLost => "frame pointer lost in code built without them".into(),
            Self::DepthLimit => format!("deeper than {frame_limit} frames"),
            Self::Unreadable => "stack memory not readable".into(),
            Self::BadReturnAddress => "no valid return address".into(),
            Self::Compat32 => "32-bit program".into(),
            Self::NoMapping => "in code of no known file".into(),
            Self::NoTable => "in an object without unwind table".into(),
            Self::NoRule => "in code without call-frame information".into(),
        }
    }
}

impl StackState {
    /// Judges a stack by how its walk ended, what was guessed on the way, and the name of its outermost user function.
    ///
    /// A zero frame pointer alone proves nothing: in code without frame pointers the register holds any value. Only at a
    /// function where threads begin is the chain whole. Where a table was still to come nothing is believed: the next stack of the kind has
    /// it.
    #[must_use]
    pub fn judge(end: StackEnd, guess: Guess, outermost: Option<&str>) -> Self {
        let at_root = outermost.is_some_and(is_thread_root);
        let reached = match guess {
            Guess::None => Self::Whole,
            Guess::Jit => Self::Guessed(GuessReason::Jit),
            Guess::NoRule => Self::Guessed(GuessReason::NoRule),
            Guess::NoTable => Self::Cut(CutReason::NoTable),
        };
        match end {
            StackEnd::NoUserMemory | StackEnd::NotWanted => Self::NoUserSide,
            StackEnd::Root => reached,
            StackEnd::ChainEnd | StackEnd::BadFramePointer | StackEnd::NoRule if at_root => reached,
            StackEnd::ChainEnd | StackEnd::NoRule if guess == Guess::NoTable => reached,
            StackEnd::ChainEnd | StackEnd::BadFramePointer => Self::Cut(CutReason::FramePointerLost),
            StackEnd::DepthLimit => Self::Cut(CutReason::DepthLimit),
            StackEnd::Unreadable => Self::Cut(CutReason::Unreadable),
            StackEnd::BadReturnAddress => Self::Cut(CutReason::BadReturnAddress),
            StackEnd::Compat32 => Self::Cut(CutReason::Compat32),
            StackEnd::NoMapping => Self::Cut(CutReason::NoMapping),
            StackEnd::NoTable => Self::Cut(CutReason::NoTable),
            StackEnd::NoRule => Self::Cut(CutReason::NoRule),
            StackEnd::NoScratch => Self::Cut(CutReason::Unreadable),
        }
    }
}

/// Functions without a caller: program entry (`_start`, in the dynamic loader too), thread entry of glibc and musl, goroutines.
fn is_thread_root(name: &str) -> bool {
    const ROOTS: [&str; 11] = [
        "_start",
        "_dl_start_user",
        "__clone3",
        "clone3",
        "__clone",
        "clone",
        "__thread_start",
        "thread_start",
        "_start_c",
        "runtime.goexit",
        "runtime.mstart",
    ];
    let name = name.split_once('@').map_or(name, |(name, _version)| name);
    ROOTS.contains(&name) || name.starts_with("runtime.goexit.") || name.starts_with("runtime.rt0_go")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_function_of_a_thread_makes_a_stack_whole() {
        let judge = |end, outermost| StackState::judge(end, Guess::None, outermost);
        assert_eq!(judge(StackEnd::ChainEnd, Some("_start")), StackState::Whole);
        assert_eq!(judge(StackEnd::ChainEnd, Some("__clone3")), StackState::Whole);
        let lost = StackState::Cut(CutReason::FramePointerLost);
        assert_eq!(judge(StackEnd::ChainEnd, Some("compute")), lost);
        assert_eq!(judge(StackEnd::ChainEnd, None), lost);
        assert_eq!(judge(StackEnd::NoUserMemory, None), StackState::NoUserSide);
    }

    #[test]
    fn a_guess_is_never_called_whole() {
        let guessed = StackState::Guessed(GuessReason::NoRule);
        assert_eq!(StackState::judge(StackEnd::Root, Guess::NoRule, Some("_start")), guessed);
        assert_eq!(StackState::judge(StackEnd::ChainEnd, Guess::NoRule, Some("_start")), guessed);
        let without_root = StackState::judge(StackEnd::NoRule, Guess::NoRule, Some("compute"));
        assert_eq!(without_root, StackState::Cut(CutReason::NoRule));
        let late = StackState::Cut(CutReason::NoTable);
        for end in [StackEnd::Root, StackEnd::ChainEnd, StackEnd::NoRule, StackEnd::NoTable] {
            assert_eq!(StackState::judge(end, Guess::NoTable, Some("_start")), late);
        }
    }
}
