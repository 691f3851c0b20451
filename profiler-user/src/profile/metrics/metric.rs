//! One metric: which events it needs, and its value with both intervals.

use super::table::{METRICS, Unit};
use crate::profile::statistics::{Estimate, Repeat, Slice, Stream, TooShort, ratio, repeat};
use crate::suggest;

/// Two events and what their ratio is called.
///
/// Events go by the name perf prints, without modifiers. Whoever supplies their samples takes care that both were measured with the same modifiers: a
/// ratio of instructions in user mode to cycles in both modes is that of nothing.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// Name in `--metrics` and JSON: lower case, with dashes.
    pub name: &'static str,
    /// Title of its column.
    pub title: &'static str,
    /// Unit of its values.
    pub unit: Unit,
    /// Event above the line.
    pub numerator: &'static str,
    /// Events that may stand below the line; the first that was measured does.
    pub denominators: &'static [&'static str],
    /// No true value is above it: an interval that is shows that the CPU counts the two events in different ways.
    pub(super) ceiling: Option<f64>,
    /// Where values begin to be good and to be bad, if that can be said.
    pub(super) marks: Option<Marks>,
    /// What it is, in a sentence or two.
    pub(super) explanation: &'static str,
    /// Where the marks come from.
    pub(super) source: &'static str,
}

/// Name and modifiers of an event: `cycles:upp` is `cycles` with `upp`. Metrics know events by the name.
#[must_use]
pub fn split_modifiers(event: &str) -> (&str, &str) {
    event.split_once(':').unwrap_or((event, ""))
}

/// Good values reach to `good`, bad ones from `bad` on; small values are good if `good` is the smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Marks {
    pub(super) good: f64,
    pub(super) bad: f64,
}

/// What each time slice of the run added to an event in one place; all slices are of one length.
pub type Slices<'a> = &'a [f64];

/// No metric has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric `{}`{}", name.escape_debug(), suggest::did_you_mean(suggestions, "a metric of `bpfprof help metrics`, such as ipc"))]
pub struct UnknownMetric {
    /// The name as it was written.
    pub name: String,
    /// The known names nearest to it; may be empty.
    pub suggestions: Vec<String>,
}

impl Metric {
    /// Every metric, in the order of the table's columns.
    #[must_use]
    pub fn all() -> &'static [Self] {
        METRICS
    }

    /// The metric of this name.
    ///
    /// # Errors
    ///
    /// [`UnknownMetric`] with the nearest names.
    pub fn by_name(name: &str) -> Result<&'static Self, UnknownMetric> {
        METRICS.iter().find(|metric| metric.name == name).ok_or_else(|| UnknownMetric {
            name: name.to_owned(),
            suggestions: suggest::nearest(name, METRICS.iter().map(|metric| metric.name)),
        })
    }

    /// The metrics that these events are enough for.
    #[must_use]
    pub fn computable<S: AsRef<str>>(events: &[S]) -> Vec<&'static Self> {
        METRICS.iter().filter(|metric| metric.missing(events).is_none()).collect()
    }

    /// What to measure as well, in words, if these events are not enough: `LLC-loads`, `task-clock or cpu-clock`.
    #[must_use]
    pub fn missing<S: AsRef<str>>(&self, events: &[S]) -> Option<String> {
        let is_measured = |name: &&str| events.iter().any(|event| event.as_ref() == *name);
        let numerator = (!is_measured(&self.numerator)).then(|| self.numerator.to_owned());
        let denominator =
            (!self.denominators.iter().any(is_measured)).then(|| self.denominators.join(" or "));
        match (numerator, denominator) {
            (Some(numerator), Some(denominator)) => Some(format!("{numerator} and {denominator}")),
            (one, other) => one.or(other),
        }
    }

    /// What it is, in a sentence or two.
    #[must_use]
    pub fn explanation(&self) -> &'static str {
        self.explanation
    }

    /// Values that are surely bad and surely good, with which colours begin, if that can be said.
    #[must_use]
    pub fn bad_and_good(&self) -> Option<(f64, f64)> {
        self.marks.map(|marks| (marks.bad, marks.good))
    }

    /// The value in this run with its *sampling* interval, from the samples of each event in one place.
    ///
    /// `None` if an event was not measured, has too few samples ([`ratio`]), or if the value is impossible.
    pub fn estimate(&self, samples: &impl Fn(&str) -> Option<Stream>) -> Option<Estimate> {
        let numerator = samples(self.numerator)?;
        let denominator = self.denominators.iter().find_map(|name| samples(name))?;
        let estimate = ratio(numerator, denominator)?.scaled(self.unit.factor());
        self.ceiling.is_none_or(|ceiling| estimate.low <= ceiling).then_some(estimate)
    }

    /// The value with its *repeat* interval, from what each slice added; `None` if an event was not measured.
    ///
    /// # Errors
    ///
    /// [`TooShort`] if the run says nothing about the next ([`repeat`]).
    pub fn repeat<'a>(&self, sums: &impl Fn(&str) -> Option<Slices<'a>>) -> Option<Result<Repeat, TooShort>> {
        let numerator = sums(self.numerator)?;
        let denominator = self.denominators.iter().find_map(|name| sums(name))?;
        let slices: Vec<Slice> =
            numerator.iter().zip(denominator).map(|(&amount, &base)| Slice { amount, base }).collect();
        Some(repeat(&slices).map(|run| run.scaled(self.unit.factor())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str) -> &'static Metric {
        Metric::by_name(name).unwrap()
    }

    fn stream(weight: f64, samples: f64) -> Stream {
        Stream { weight, samples, period: weight / samples }
    }

    #[test]
    fn values_come_in_their_units() {
        let samples = |name: &str| match name {
            "instructions" => Some(stream(2e9, 1000.0)),
            "cycles" => Some(stream(1e9, 1000.0)),
            "branch-misses" => Some(stream(4e6, 1000.0)),
            "branches" => Some(stream(4e8, 1000.0)),
            "cpu-clock" => Some(stream(5e8, 1000.0)),
            "page-faults" => Some(stream(100.0, 100.0)),
            _ => None,
        };
        for (name, expected) in [
            ("ipc", 2.0),
            ("branch-mpki", 2.0),
            ("branch-miss-ratio", 0.01),
            ("faults-per-second", 200.0),
            ("clock-speed", 2.0),
        ] {
            let found = metric(name).estimate(&samples).unwrap();
            assert!(
                (found.value - expected).abs() < 1e-9 && found.low < expected && found.high > expected,
                "{name}"
            );
        }
        assert_eq!(metric("llc-mpki").estimate(&samples), None);
    }

    #[test]
    fn the_impossible_is_not_shown() {
        let with = |misses: f64| {
            move |name: &str| match name {
                "branch-misses" => Some(stream(misses, 1000.0)),
                "branches" => Some(stream(1e6, 1000.0)),
                _ => None,
            }
        };
        assert!(metric("branch-miss-ratio").estimate(&with(1.02e6)).is_some(), "within the interval");
        assert_eq!(metric("branch-miss-ratio").estimate(&with(2e6)), None);
    }

    #[test]
    fn slices_give_the_other_interval() {
        let (faults, clock) = ([3.0; 40], [1.5e8; 40]);
        let sums = |name: &str| match name {
            "page-faults" => Some(&faults[..]),
            "task-clock" => Some(&clock[..]),
            _ => None,
        };
        let run = metric("faults-per-second").repeat(&sums).unwrap().unwrap();
        assert!((run.value - 20.0).abs() < 1e-9 && run.blocks == 20, "{run:?}");
        assert_eq!(metric("ipc").repeat(&sums), None);
        let short = |_: &str| Some(&[1.0; 5][..]);
        assert_eq!(metric("ipc").repeat(&short), Some(Err(TooShort::FewSlices)));
    }

    #[test]
    fn what_is_measured_decides_what_can_be_computed() {
        let names = |events: &[&str]| Metric::computable(events).iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names(&["cycles", "instructions", "LLC-load-misses"]), ["ipc", "llc-mpki"]);
        assert_eq!(names(&["cpu-clock", "page-faults"]), ["faults-per-second"]);
        assert!(names(&["page-faults"]).is_empty());
        assert_eq!(metric("llc-mpki").missing(&["LLC-load-misses"]).as_deref(), Some("instructions"));
        assert_eq!(
            metric("faults-per-second").missing::<&str>(&[]).as_deref(),
            Some("page-faults and task-clock or cpu-clock")
        );
    }

    #[test]
    fn mistyped_names_get_a_suggestion() {
        let message = |name: &str| Metric::by_name(name).unwrap_err().to_string();
        assert_eq!(message("branch-mkpi"), "unknown metric `branch-mkpi`: did you mean `branch-mpki`?");
        assert_eq!(message("LLC-MPKI"), "unknown metric `LLC-MPKI`: did you mean `llc-mpki`?");
        assert_eq!(
            message("xyzzy"),
            "unknown metric `xyzzy`: use a metric of `bpfprof help metrics`, such as ipc"
        );
    }
}
