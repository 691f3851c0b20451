//! pprof files: what writing and reading agree on. The files are written by `output` and read by `saved`.

mod comment;
pub(crate) mod schema;

pub(crate) use comment::{headers_in, to_comments};

use crate::profile::EventInfo;
use schema::ValueType;

/// Labels of a sample.
pub(crate) mod label {
    /// Process id, a number.
    pub(crate) const PROCESS: &str = "pid";
    /// Thread id, a number.
    pub(crate) const THREAD: &str = "tid";
    /// Command name of the thread.
    pub(crate) const THREAD_NAME: &str = "thread";
    /// Command name of the process: of its main thread, if that was sampled.
    pub(crate) const COMM: &str = "comm";
    /// Path of the process's cgroup; absent where it is not known.
    pub(crate) const CGROUP: &str = "cgroup";
    /// Index of the slice of time, a number.
    pub(crate) const SLICE: &str = "slice";
}

/// Mappings that begin here hold kernel code: on every machine the kernel has the upper half of the addresses.
pub(crate) const KERNEL_START: u64 = 1 << 63;

/// Type and unit of an event, in pprof's words: CPU time is `cpu` in `nanoseconds`.
pub(crate) fn event_type(event: &EventInfo, is_main: bool) -> (&str, &str) {
    match (event.unit.as_str(), is_main) {
        ("ns", true) => ("cpu", "nanoseconds"),
        ("ns", false) => (&event.name, "nanoseconds"),
        (unit, _) => (&event.name, unit),
    }
}

/// Number and place of the values of a sample: the main event's samples and weight, a weight for each counter, then the samples of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    counters: usize,
}

impl Columns {
    /// With so many counters.
    pub(crate) fn new(counters: usize) -> Self {
        Self { counters }
    }

    /// All of them.
    pub(crate) fn count(self) -> usize {
        2 + 2 * self.counters
    }

    /// Column of an event's samples; 0 is the main event.
    pub(crate) fn samples(self, event: usize) -> usize {
        if event == 0 { 0 } else { 1 + self.counters + event }
    }

    /// Column of its weight.
    pub(crate) fn weight(self, event: usize) -> usize {
        1 + event
    }

    /// Types of the columns; `intern` gives a text its place in the string table.
    pub(crate) fn types(self, events: &[&EventInfo], mut intern: impl FnMut(&str) -> i64) -> Vec<ValueType> {
        let mut types = vec![ValueType::default(); self.count()];
        for (number, &event) in events.iter().enumerate() {
            let (name, unit) = event_type(event, number == 0);
            let samples = if number == 0 { "samples".into() } else { format!("{}-samples", event.name) };
            types[self.samples(number)] = ValueType { r#type: intern(&samples), unit: intern("count") };
            types[self.weight(number)] = ValueType { r#type: intern(name), unit: intern(unit) };
        }
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_one_meaning() {
        for counters in [0, 1, 3] {
            let columns = Columns::new(counters);
            let mut all: Vec<usize> =
                (0..=counters).flat_map(|event| [columns.samples(event), columns.weight(event)]).collect();
            all.sort_unstable();
            assert_eq!(all, (0..columns.count()).collect::<Vec<_>>());
        }
        assert_eq!((Columns::new(2).samples(0), Columns::new(2).weight(0)), (0, 1));
    }
}
