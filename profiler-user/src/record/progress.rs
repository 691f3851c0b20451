//! One line on the terminal while a recording runs.

use std::io::{self, IsTerminal as _, Write as _};

use super::session::Status;
use crate::cli::{Options, Verbosity};
use crate::output::thousands;

/// The line; it is gone when this is dropped.
pub(super) struct Progress {
    shown: bool,
    wanted: bool,
}

impl Progress {
    /// Shows nothing unless stderr is a terminal.
    pub(super) fn new(options: &Options) -> Self {
        let wanted = options.output.verbosity > Verbosity::Quiet && io::stderr().is_terminal();
        Self { shown: false, wanted }
    }

    /// Renews the line.
    pub(super) fn show(&mut self, status: Status) {
        if self.wanted {
            self.shown = true;
            let Status { elapsed, samples, lost } = status;
            let seconds = elapsed.as_secs_f64();
            // A terminal that went away is no reason to end the recording.
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{seconds:6.1} s  {} samples  {} lost  (Ctrl-C stops)",
                thousands(samples),
                thousands(lost)
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
