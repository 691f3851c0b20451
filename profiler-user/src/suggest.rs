//! The known names nearest to a mistyped one.

/// The candidates nearest to `typed`, at most three, all equally near; empty when none is near enough.
///
/// Case does not count. A name that begins with `typed` is near, but less so than any name within the edit
/// distance.
pub(crate) fn nearest<S: Into<String>>(typed: &str, candidates: impl IntoIterator<Item = S>) -> Vec<String> {
    let typed: Vec<char> = typed.to_lowercase().chars().take(LONGEST_TYPED).collect();
    let mut best = usize::MAX;
    let mut names: Vec<String> = Vec::new();
    for candidate in candidates {
        let candidate = candidate.into();
        let Some(distance) = nearness(&typed, &candidate) else { continue };
        if distance < best {
            best = distance;
            names.clear();
        }
        if distance == best && names.len() < MOST_NAMES {
            names.push(candidate);
        }
    }
    names
}

/// The end of a message about an unknown name: the suggestions, or what to use instead if there are none.
pub(crate) fn did_you_mean(suggestions: &[String], otherwise: &str) -> String {
    let quoted: Vec<String> = suggestions.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => format!(": use {otherwise}"),
        names => format!(": did you mean {}?", names.join(" or ")),
    }
}

/// Longer texts are mistakes of another kind, and the distance costs time quadratic in the length.
const LONGEST_TYPED: usize = 64;
const SHORTEST_PREFIX: usize = 3;
const MOST_NAMES: usize = 3;

/// How far apart the two names are, if they are near at all.
fn nearness(typed: &[char], candidate: &str) -> Option<usize> {
    let known: Vec<char> = candidate.to_lowercase().chars().collect();
    let allowed = (typed.len() / 3).clamp(1, 3);
    let distance = edit_distance(typed, &known);
    if distance <= allowed {
        Some(distance)
    } else if typed.len() >= SHORTEST_PREFIX && known.starts_with(typed) {
        Some(allowed + 1)
    } else {
        None
    }
}

/// Levenshtein distance: insertions, deletions and replacements of single characters.
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (deleted, &a) in from.iter().enumerate() {
        let mut diagonal = deleted;
        let mut left = deleted + 1;
        let mut next = vec![left];
        for (&above, &b) in row.iter().skip(1).zip(to) {
            left = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            diagonal = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> usize {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        edit_distance(&chars(a), &chars(b))
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("cyles", "cycles"), 1);
        assert_eq!(distance("flaw", "lawn"), 2);
    }

    #[test]
    fn only_the_nearest_are_kept() {
        let known = ["cycles", "bus-cycles", "instructions", "branch-misses", "cache-misses"];
        assert_eq!(nearest("cyles", known), ["cycles"]);
        assert_eq!(nearest("CYCLES", known), ["cycles"]);
        assert_eq!(nearest("instr", known), ["instructions"]);
        assert!(nearest("xyzzy", known).is_empty());
        assert!(nearest("", known).is_empty());
    }

    #[test]
    fn ties_are_kept_up_to_three() {
        assert_eq!(nearest("aaax", ["aaaa", "aaab", "aaac", "aaad"]), ["aaaa", "aaab", "aaac"]);
    }
}
