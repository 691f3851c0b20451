//! What the events of a function say together: instructions per cycle, misses per 1000 instructions, …
//!
//! [`Metric`] is one formula, [`Reading`] says in words what the numbers of a function mean, [`explain`] is the documentation of
//! both, made from the same tables.

mod explain;
mod metric;
mod reading;
mod table;

pub use explain::explain;
pub use metric::{Metric, Slices, UnknownMetric, split_modifiers};
pub use reading::{Cause, Reading, reading};
pub use table::Unit;
