//! Why a text is not an event.

use crate::suggest::did_you_mean;

/// Why a text is not an event that can be sampled: the cause, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseEventError {
    /// No event has this name.
    #[error("unknown event `{}`{}", name.escape_debug(), did_you_mean(suggestions, "an event of `bpfprof list`, such as cycles or cpu-clock"))]
    Unknown {
        /// The name as it was written.
        name: String,
        /// The known names nearest to it; may be empty.
        suggestions: Vec<String>,
    },
    /// A letter after the last `:` is not a modifier.
    #[error(
        "unknown modifier `{}` in `{}`: use u, k, h, p, pp, ppp, G or H",
        letter.escape_debug(),
        event.escape_debug()
    )]
    UnknownModifier {
        /// The letter.
        letter: char,
        /// The whole event as it was written.
        event: String,
    },
    /// A modifier other than `p` is there twice, or `p` more than three times.
    #[error(
        "modifier `{letter}` is repeated too often in `{}`: write p up to three times, any other once",
        event.escape_debug()
    )]
    RepeatedModifier {
        /// The letter.
        letter: char,
        /// The whole event as it was written.
        event: String,
    },
    /// Nothing follows the `:`.
    #[error("no modifier follows the `:` in `{}`: leave the `:` out", event.escape_debug())]
    MissingModifier {
        /// The whole event as it was written.
        event: String,
    },
    /// A precise level was asked of an event that the PMU does not raise.
    #[error("`{event}` is not raised by the CPU's PMU and has no precise levels: leave `p` out")]
    PreciseWithoutPmu {
        /// The event without its modifiers.
        event: String,
    },
    /// perf has the cache and the operation, but not together.
    #[error("`{cache}` has no {operation}: use {instead}")]
    NoSuchCacheOperation {
        /// The cache in perf's spelling.
        cache: &'static str,
        /// The operation in the plural.
        operation: &'static str,
        /// An event of this cache that exists.
        instead: String,
    },
    /// The code of a raw event does not fit 64 bits.
    #[error(
        "raw event `{name}` is longer than 16 hexadecimal digits: give the PMU's config value, such as r01c4"
    )]
    RawTooLong {
        /// The event as it was written.
        name: String,
    },
    /// The event exists but raises no samples.
    #[error("`{name}` raises no samples: use cpu-clock or another event")]
    NoSamples {
        /// The event's name.
        name: &'static str,
    },
    /// A breakpoint is not `mem:ADDR[/LEN][:access]`.
    #[error("bad breakpoint `{}`: {problem}", event.escape_debug())]
    BadBreakpoint {
        /// The whole event as it was written.
        event: String,
        /// What is wrong, and what would be right.
        problem: &'static str,
    },
    /// An event of a PMU is not `PMU/term=value,…/`.
    #[error("bad PMU event `{}`: {problem}", event.escape_debug())]
    BadPmuEvent {
        /// The whole event as it was written.
        event: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Several events in braces, where one is wanted.
    #[error("`{}` is a group of events, where one is wanted: name a single event", event.escape_debug())]
    Group {
        /// The group as it was written.
        event: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(name: &str, suggestions: &[&str]) -> String {
        let suggestions = suggestions.iter().map(|&name| name.to_owned()).collect();
        ParseEventError::Unknown { name: name.to_owned(), suggestions }.to_string()
    }

    #[test]
    fn unknown_names_come_with_the_nearest_ones() {
        assert_eq!(unknown("cyles", &["cycles"]), "unknown event `cyles`: did you mean `cycles`?");
        assert_eq!(unknown("x", &["a", "b"]), "unknown event `x`: did you mean `a` or `b`?");
        assert!(unknown("x", &[]).contains("cpu-clock"));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert!(!unknown("\u{1b}[2J", &[]).contains('\u{1b}'));
    }
}
