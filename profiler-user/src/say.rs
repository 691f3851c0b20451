//! Saying something to the user on stderr.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes a line that begins with the program's name.
///
/// A stderr that nobody reads any more must not cost the outputs, so errors are ignored.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "bpfprof: {text}");
}
