//! What a name has to match: a part of it, or a glob.

use wildmatch::WildMatch;

/// A pattern of the user. Case does not count.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: String,
    glob: WildMatch,
}

impl Pattern {
    /// A glob if the text has `*` or `?`, else a part of the name.
    pub(super) fn new(text: &str) -> Self {
        let is_glob = text.contains(['*', '?']);
        let glob = if is_glob { text.to_owned() } else { format!("*{text}*") };
        Self { text: text.to_owned(), glob: WildMatch::new_case_insensitive(&glob) }
    }

    /// Whether a name matches.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.glob.matches(name)
    }

    /// Whether it is about tracepoints, which alone have a colon within their names.
    pub(super) fn asks_for_tracepoints(&self) -> bool {
        self.text.contains(':') || self.text.eq_ignore_ascii_case("tracepoint")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_globs_without_case() {
        let matches = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(matches("llc", "LLC-load-misses") && matches("MISS", "branch-misses"));
        assert!(matches("L1-*-misses", "L1-dcache-load-misses") && matches("c?cles", "cycles"));
        assert!(!matches("L1-*", "xL1-dcache-loads") && !matches("c?cles", "bus-cycles"));
        assert!(matches("", "cycles") && !matches("cyles", "cycles"));
    }

    #[test]
    fn a_colon_asks_for_tracepoints() {
        let asks = |pattern: &str| Pattern::new(pattern).asks_for_tracepoints();
        assert!(asks("sched:*") && asks("Tracepoint") && !asks("sched"));
    }
}
