//! Text that is safe to show. Names come from untrusted files, and go to terminals, lines of text and XML.

use std::borrow::Cow;

/// Longest name that is kept, in bytes. Longer ones end in their hash, so that two stay two.
const LONGEST_NAME: usize = 4096;

/// Replaces what would command a terminal, break a line, turn the direction of writing, or be forbidden in XML.
#[must_use]
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) {
        Cow::Owned(text.replace(is_unsafe, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A name as profiles keep it: printable, and not too long.
#[must_use]
pub(crate) fn printable_name(name: &str) -> Cow<'_, str> {
    let text = printable(name);
    if text.len() <= LONGEST_NAME {
        return text;
    }
    let hash = format!("…{:016x}", hash(text.as_bytes()));
    let mut end = LONGEST_NAME - hash.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(text[..end].to_owned() + &hash)
}

fn is_unsafe(c: char) -> bool {
    // Directional formatting (Unicode Standard Annex #9, §2), separators that are line breaks to some readers, and what is no character of
    // XML 1.0 (§2.2).
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

/// FNV-1a of 64 bits: the same in every run and on every machine.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_command_no_terminal_and_break_no_format() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        for c in ['\u{202e}', '\u{2066}', '\u{2028}', '\u{ffff}', '\u{fffe}', '\u{85}', '\u{7f}', '\0'] {
            assert_eq!(printable(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        assert!(matches!(printable("naïve 名 🦀"), Cow::Borrowed("naïve 名 🦀")));
    }

    #[test]
    fn long_names_stay_two() {
        let [one, two] = ["x", "y"].map(|end| "é".repeat(3000) + end);
        let (one, two) = (printable_name(&one).into_owned(), printable_name(&two).into_owned());
        assert!(one.len() <= LONGEST_NAME && two.len() <= LONGEST_NAME && one != two);
        assert_eq!(printable_name(&one), one, "cut once");
        assert_eq!(printable_name("main"), "main");
    }
}
