//! The table: what each function, object, line, thread or process costs itself, and with all it calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use indexmap::IndexSet;

use super::measured::Measured;
use super::metrics::{Metric, Reading, reading};
use super::model::{EventId, LineId, Profile, Sample, index};
use super::slices;
use super::statistics::{Estimate, Repeat, Slice, repeat};
use super::sum::Sum;

/// What a row of a table stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// A function; one that is inlined has its own row.
    #[default]
    Function,
    /// An object.
    Object,
    /// A source line; a function where the line is not known, and an address where its name is not known either.
    Line,
    /// A thread.
    Thread,
    /// A process.
    Process,
}

/// Rows by descending self weight of the main event.
#[derive(Debug)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
    /// All of the profile, by event.
    pub whole: Box<[Sum]>,
    measured: Measured,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it stands for.
    pub label: Label,
    /// What falls on it alone, by event: the innermost frame counts. An inlined function has its own; the function it is part of does not
    /// count it.
    pub own: Box<[Sum]>,
    /// What falls on it and what it calls, by event; once each, however often it recurs in a stack.
    pub total: Box<[Sum]>,
    /// The samples in `own`, by index in the profile.
    samples: Vec<u32>,
}

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// Name of the function, object, line, thread or process.
    pub name: Arc<str>,
    /// The object that a function or line lies in; empty for others.
    pub object: Arc<str>,
}

impl By {
    /// The heading of its column.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Object => "object",
            Self::Line => "line",
            Self::Thread => "thread",
            Self::Process => "process",
        }
    }

    /// What the rows are together.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Function => "functions",
            Self::Object => "objects",
            Self::Line => "lines",
            Self::Thread => "threads",
            Self::Process => "processes",
        }
    }
}

impl Table {
    /// Counts a profile.
    #[must_use]
    pub fn new(profile: &Profile, by: By) -> Self {
        let events = profile.header.counters.len() + 1;
        let labels = Labels::new(profile, by);
        let blank = || vec![Sum::default(); events].into_boxed_slice();
        let mut whole = blank();
        let mut rows: HashMap<u32, Row> = HashMap::new();
        let mut seen = Vec::new();
        for (number, sample) in profile.samples.iter().enumerate() {
            let event = usize::from(sample.event.0);
            let Some(sum) = whole.get_mut(event) else { continue };
            let amount = sample.amount();
            *sum += amount;
            labels.of(profile, sample, &mut seen);
            let Some(&leaf) = seen.last() else { continue };
            let new = |label: u32| Row {
                label: labels.all[label as usize].clone(),
                own: blank(),
                total: blank(),
                samples: Vec::new(),
            };
            let row = rows.entry(leaf).or_insert_with(|| new(leaf));
            row.own[event] += amount;
            row.samples.push(index(number));
            seen.sort_unstable();
            seen.dedup();
            for &label in &seen {
                rows.entry(label).or_insert_with(|| new(label)).total[event] += amount;
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            let key = |row: &Row| (row.own[0].weight, row.total[0].weight);
            let name = |row: &Row| (Arc::clone(&row.label.name), Arc::clone(&row.label.object));
            key(b).cmp(&key(a)).then_with(|| name(a).cmp(&name(b)))
        });
        Self { rows, whole, measured: Measured::new(&profile.header) }
    }

    /// The metrics that the measured events are enough for, in the order of their columns.
    #[must_use]
    pub fn metrics(&self) -> Vec<&'static Metric> {
        self.measured.metrics()
    }

    /// The events above and below the line of a metric; `None` if one was not measured.
    #[must_use]
    pub fn events_of(&self, metric: &Metric) -> Option<(EventId, EventId)> {
        let event = |name| Some(EventId(u16::try_from(self.measured.event(name)?).ok()?));
        Some((event(metric.numerator)?, metric.denominators.iter().find_map(|name| event(name))?))
    }

    /// A metric of what falls on a row alone, with its sampling interval; `None` where there are too few samples for it.
    #[must_use]
    pub fn metric(&self, metric: &Metric, row: &Row) -> Option<Estimate> {
        metric.estimate(&self.measured.streams(&row.own, &self.whole))
    }

    /// A metric of what falls on a row and what it calls.
    #[must_use]
    pub fn total_metric(&self, metric: &Metric, row: &Row) -> Option<Estimate> {
        metric.estimate(&self.measured.streams(&row.total, &self.whole))
    }

    /// A metric of the whole profile.
    #[must_use]
    pub fn whole_metric(&self, metric: &Metric) -> Option<Estimate> {
        metric.estimate(&self.measured.streams(&self.whole, &self.whole))
    }

    /// What the numbers of a row say in words; `None` if nothing was measured that could be read.
    #[must_use]
    pub fn reading(&self, row: &Row) -> Option<Reading> {
        reading(&self.measured.streams(&row.own, &self.whole))
    }

    /// What other runs would give for the rows; `profile` is the one that was counted.
    #[must_use]
    pub fn repeats<'a>(&'a self, profile: &'a Profile) -> Repeats<'a> {
        Repeats { profile, measured: &self.measured, whole: slices::whole(profile) }
    }

    /// The source line that takes most of what falls on a row alone of the main event, and its part of that; `None` where no line is known.
    /// `profile` is the one that was counted.
    #[must_use]
    pub fn hottest_line(&self, profile: &Profile, row: &Row) -> Option<(LineId, f64)> {
        let mut weights: BTreeMap<LineId, u64> = BTreeMap::new();
        let samples = row.samples.iter().map(|&number| &profile.samples[number as usize]);
        for sample in samples.filter(|sample| sample.event == EventId::MAIN) {
            let leaf = profile.stack(sample.stack).last().map(|&frame| profile.frame(frame));
            if let Some(line) = leaf.and_then(|frame| frame.line) {
                *weights.entry(line).or_default() += sample.weight;
            }
        }
        // Of equals, the one that is numbered first.
        let (&line, &weight) = weights.iter().rev().max_by_key(|(_, weight)| **weight)?;
        let own = row.own[0].weight;
        (own > 0).then(|| (line, weight as f64 / own as f64))
    }

    /// How much of an event falls on a part of the profile, with its sampling interval; exact where each occurrence was a sample.
    #[must_use]
    pub fn count(&self, event: EventId, part: &Sum) -> Option<Estimate> {
        if self.measured.is_exact(event) {
            let exact = part.weight as f64;
            return Some(Estimate { value: exact, low: exact, high: exact });
        }
        let whole = self.whole.get(usize::from(event.0))?;
        Some(self.share(event, part)?.scaled(whole.weight as f64))
    }

    /// A part of all that the profile has of an event; `None` when it has nothing.
    #[must_use]
    pub fn part(&self, event: EventId, part: &Sum) -> Option<f64> {
        let whole = self.whole.get(usize::from(event.0))?.weight;
        (whole > 0).then(|| part.weight as f64 / whole as f64)
    }

    /// A part of all that the profile has of an event, with its sampling interval.
    #[must_use]
    pub fn share(&self, event: EventId, part: &Sum) -> Option<Estimate> {
        part.share_of(self.whole.get(usize::from(event.0))?)
    }
}

/// The slices of a profile, for what other runs would give.
#[derive(Debug)]
pub struct Repeats<'a> {
    profile: &'a Profile,
    measured: &'a Measured,
    /// Weight of the main event, by slice.
    whole: Vec<f64>,
}

/// What falls on a row alone, with repeat intervals; what the run is too short to say is absent.
#[derive(Debug)]
pub struct RowRepeat {
    /// Its share in the main event.
    pub share: Option<Repeat>,
    /// Its metrics.
    pub metrics: Vec<(&'static Metric, Repeat)>,
}

impl Repeats<'_> {
    /// What other runs would give for a row.
    #[must_use]
    pub fn of(&self, row: &Row) -> RowRepeat {
        let by_event = slices::by_event(self.profile, &row.samples);
        let pairs = by_event[0].iter().zip(&self.whole);
        let shares: Vec<Slice> = pairs.map(|(&amount, &base)| Slice { amount, base }).collect();
        RowRepeat { share: repeat(&shares).ok(), metrics: self.measured.repeats(by_event) }
    }
}

/// The rows that frames and tasks belong to.
struct Labels {
    all: IndexSet<Label>,
    by_frame: Vec<u32>,
    by_task: Vec<u32>,
}

impl Labels {
    fn new(profile: &Profile, by: By) -> Self {
        let mut all = IndexSet::new();
        let mut number = |label| index(all.insert_full(label).0);
        let (mut by_frame, mut by_task) = (Vec::new(), Vec::new());
        match by {
            By::Thread | By::Process => {
                by_task = profile
                    .tasks
                    .iter()
                    .map(|task| {
                        let id = if by == By::Thread { task.thread } else { task.process };
                        number(Label { name: format!("{} ({id})", task.comm).into(), object: "".into() })
                    })
                    .collect();
            }
            By::Function | By::Object | By::Line => {
                by_frame = profile
                    .frames
                    .iter()
                    .map(|frame| {
                        let function = profile.function(frame.function);
                        let of_object = |name: &Arc<str>| Label {
                            name: Arc::clone(name),
                            object: Arc::clone(&function.object),
                        };
                        number(match (by, frame.line) {
                            (By::Object, _) => {
                                Label { name: Arc::clone(&function.object), object: "".into() }
                            }
                            (By::Line, Some(line)) => of_object(&profile.line(line).to_string().into()),
                            // The name is that of all the function's code.
                            (By::Line, None) if is_address(&function.name) => {
                                let exact = format!("{} at file offset {:#x}", function.name, frame.address);
                                of_object(&exact.into())
                            }
                            _ => of_object(&function.name),
                        })
                    })
                    .collect();
            }
        }
        Self { all, by_frame, by_task }
    }

    /// The rows of a sample, that of its innermost frame last.
    fn of(&self, profile: &Profile, sample: &Sample, rows: &mut Vec<u32>) {
        rows.clear();
        if let Some(&row) = self.by_task.get(sample.task.0 as usize) {
            rows.push(row);
        } else {
            rows.extend(profile.stack(sample.stack).iter().map(|frame| self.by_frame[frame.0 as usize]));
        }
    }
}

/// Whether an address stands for the name of a function, as `[object+0xaddress]`.
fn is_address(name: &str) -> bool {
    name.starts_with('[') && name.contains("+0x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    fn row<'a>(table: &'a Table, name: &str) -> &'a Row {
        table.rows.iter().find(|row| &*row.label.name == name).unwrap()
    }

    fn amounts(row: &Row) -> [(u64, u64); 2] {
        [&row.own, &row.total].map(|sums| (sums[0].samples, sums[0].weight))
    }

    #[test]
    fn recursion_counts_once_and_the_leaf_alone_is_self() {
        let profile = profile(&[("main;f;f;g", 3, 30), ("main;f", 1, 10)]);
        let table = Table::new(&profile, By::Function);
        assert_eq!(amounts(row(&table, "f")), [(1, 10), (4, 40)]);
        assert_eq!(row(&table, "main").own[0].samples, 0);
        assert_eq!(&*table.rows[0].label.name, "g");
        assert_eq!((table.whole[0].samples, table.whole[0].weight), (4, 40));
        let own = table.share(EventId::MAIN, &row(&table, "g").own[0]).unwrap();
        assert!((own.value - 0.75).abs() < 1e-9 && own.low < 0.75 && own.high > 0.75);
    }

    #[test]
    fn events_are_counted_apart() {
        let profile = with_counter(profile(&[("main;f", 3, 30)]), "page-faults", &[("main;g", 2, 7)]);
        let table = Table::new(&profile, By::Function);
        let faults = &table.metrics()[0];
        assert_eq!(faults.name, "faults-per-second");
        assert_eq!(table.events_of(faults), Some((EventId(1), EventId::MAIN)));
        assert_eq!(row(&table, "f").own[1], Sum::default());
        assert_eq!((row(&table, "g").own[0].weight, row(&table, "g").own[1].weight), (0, 7));
        assert_eq!((row(&table, "main").total[0].weight, row(&table, "main").total[1].weight), (30, 7));
    }

    #[test]
    fn rows_stand_for_what_is_asked() {
        let profile = profile(&[("main;f;read_[k]", 3, 30), ("main;f", 1, 10)]);
        let names = |by| {
            let table = Table::new(&profile, by);
            table.rows.iter().map(|row| (row.label.name.to_string(), amounts(row))).collect::<Vec<_>>()
        };
        assert_eq!(
            names(By::Object),
            [("[kernel]".into(), [(3, 30), (3, 30)]), ("app".into(), [(1, 10), (4, 40)])]
        );
        for by in [By::Thread, By::Process] {
            assert_eq!(names(by), [("app (42)".into(), [(4, 40), (4, 40)])]);
        }
        // Without lines, functions stand for them.
        assert_eq!(names(By::Line), names(By::Function));
    }
}
