//! Saying something to the user on stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use crate::printable::printable;

/// Writes a line that begins with the program's name.
///
/// A stderr that nobody reads any more must not cost the outputs, so errors are ignored.
pub fn say(text: impl Display) {
    let text = text.to_string();
    let lines: Vec<_> = text.lines().map(printable).collect();
    let _ = writeln!(io::stderr().lock(), "bpfprof: {}", lines.join("\n"));
}

/// A line on the terminal about work that takes a while. It is gone when this is dropped.
pub struct StatusLine {
    wanted: bool,
    shown: bool,
}

impl StatusLine {
    /// Shows nothing unless it is wanted and stderr is a terminal.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        Self { wanted: wanted && io::stderr().is_terminal(), shown: false }
    }

    /// Renews the line. A terminal that went away is no reason to end the work.
    pub fn show(&mut self, text: impl Display) {
        if self.wanted {
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{}", printable(&text.to_string()));
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
