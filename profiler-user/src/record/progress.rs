//! One line on the terminal while a recording runs.

use super::session::Status;
use crate::output::thousands;
use crate::say::StatusLine;

/// Renews the line.
pub(super) fn show(line: &mut StatusLine, status: Status) {
    let Status { elapsed, samples, lost } = status;
    line.show(format_args!(
        "{:6.1} s  {} samples  {} lost  (Ctrl-C stops)",
        elapsed.as_secs_f64(),
        thousands(samples),
        thousands(lost)
    ));
}
