//! Which events were measured, by the names that metrics know them by.

use super::header::{Attribution, EventInfo, Header};
use super::metrics::{Metric, split_modifiers};
use super::model::EventId;
use super::statistics::{Repeat, Stream, TooShort};
use super::sum::Sum;

/// The events of a profile that can be set against each other: those counted in the same modes as the main event.
#[derive(Debug)]
pub(super) struct Measured {
    /// Names without modifiers, by event; `None` for events that were counted in other modes.
    names: Vec<Option<String>>,
    /// Whether every occurrence was a sample, by event.
    exact: Vec<bool>,
    /// What targets counted, against what of it is in functions, by event.
    in_full: Vec<f64>,
}

impl Measured {
    pub(super) fn new(header: &Header) -> Self {
        let (_, main_modes) = split(&header.event.name);
        let names = header.events().map(|(_, event)| {
            let (name, modes) = split(&event.name);
            (modes == main_modes).then(|| name.to_owned())
        });
        Self {
            names: names.collect(),
            exact: header.events().map(|(_, event)| is_exact(event)).collect(),
            in_full: header.events().map(|(_, event)| in_full(event)).collect(),
        }
    }

    /// The index of an event, by its name.
    pub(super) fn event(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_deref() == Some(name))
    }

    /// The metrics that the events are enough for.
    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        let names: Vec<&str> = self.names.iter().flatten().map(String::as_str).collect();
        Metric::computable(&names)
    }

    /// Whether every occurrence of the event was a sample.
    pub(super) fn is_exact(&self, event: EventId) -> bool {
        self.exact.get(usize::from(event.0)).copied().unwrap_or(false)
    }

    /// The samples of each event in one place, by the event's name, with their part of what is in no function.
    pub(super) fn streams(&self, part: &[Sum], whole: &[Sum]) -> impl Fn(&str) -> Option<Stream> {
        move |name| {
            let event = self.event(name)?;
            let (part, whole) = (part.get(event)?, whole.get(event)?);
            // An event without any sample says nothing: it may never have had a counter.
            let Stream { weight, samples, period } = part.stream(whole);
            let in_full = self.in_full[event];
            (whole.samples > 0).then_some(Stream {
                weight: weight * in_full,
                samples,
                period: period * in_full,
            })
        }
    }

    /// A metric with its repeat interval, from what each slice added to each event in one place.
    pub(super) fn repeat(
        &self,
        metric: &Metric,
        by_event: Vec<Vec<f64>>,
    ) -> Option<Result<Repeat, TooShort>> {
        self.repeat_in_full(metric, &self.in_full(by_event))
    }

    /// All metrics of one place that the run is long enough for, as [`Self::repeat`].
    pub(super) fn repeats(&self, by_event: Vec<Vec<f64>>) -> Vec<(&'static Metric, Repeat)> {
        let by_event = self.in_full(by_event);
        let repeat = |metric| Some((metric, self.repeat_in_full(metric, &by_event)?.ok()?));
        self.metrics().into_iter().filter_map(repeat).collect()
    }

    fn repeat_in_full(&self, metric: &Metric, by_event: &[Vec<f64>]) -> Option<Result<Repeat, TooShort>> {
        metric.repeat(&|name| self.event(name).map(|event| by_event[event].as_slice()))
    }

    fn in_full(&self, mut by_event: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        for (slices, in_full) in by_event.iter_mut().zip(&self.in_full) {
            slices.iter_mut().for_each(|slice| *slice *= in_full);
        }
        by_event
    }
}

/// Name and modes of an event: `cycles:upp` is `cycles` in the mode `u`. Precision changes where an event lands, not what it counts.
fn split(event: &str) -> (&str, String) {
    let (name, modifiers) = split_modifiers(event);
    (name, modifiers.chars().filter(|&letter| letter != 'p').collect())
}

/// With `delta` attribution, what is counted between the last sample of a task and the switch to another is in no function, while the
/// samples of the main event stand for all of the time. Each function is given its part of it, or every ratio to the main event would be low.
fn in_full(event: &EventInfo) -> f64 {
    if event.weight == 0 { 1.0 } else { (event.weight as f64 + event.residual as f64) / event.weight as f64 }
}

fn is_exact(event: &EventInfo) -> bool {
    event.attribution == Attribution::Overflow && event.samples > 0 && event.samples == event.weight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(names: &[&str]) -> Measured {
        let mut events = names.iter().map(|&name| EventInfo { name: name.into(), ..EventInfo::default() });
        let event = events.next().unwrap();
        Measured::new(&Header { event, counters: events.collect(), ..Header::default() })
    }

    #[test]
    fn events_of_other_modes_are_not_set_against_each_other() {
        let names =
            |events: &[&str]| measured(events).metrics().iter().map(|metric| metric.name).collect::<Vec<_>>();
        assert_eq!(names(&["cycles", "instructions"]), ["ipc"]);
        assert_eq!(names(&["cycles:upp", "instructions:u"]), ["ipc"]);
        assert!(names(&["cycles", "instructions:u"]).is_empty());
        assert_eq!(names(&["cpu-clock", "page-faults"]), ["faults-per-second"]);
    }

    #[test]
    fn what_is_in_no_function_is_spread_over_all() {
        let event = |name: &str, weight, residual| EventInfo {
            name: name.into(),
            weight,
            residual,
            ..EventInfo::default()
        };
        let header = Header {
            event: event("cycles", 4000, 0),
            counters: vec![event("instructions", 900, 100)],
            ..Header::default()
        };
        let measured = Measured::new(&header);
        let sum = |samples, weight| {
            let mut sum = Sum::default();
            sum += crate::kernel::Amount { samples, weight };
            sum
        };
        let whole = [sum(400, 4000), sum(400, 900)];
        let ipc = Metric::by_name("ipc").unwrap();
        let value = ipc.estimate(&measured.streams(&whole, &whole)).unwrap().value;
        assert!((value - 0.25).abs() < 1e-9, "{value}");
        let slices = vec![vec![100.0; 40], vec![22.5; 40]];
        let value = measured.repeat(ipc, slices).unwrap().unwrap().value;
        assert!((value - 0.25).abs() < 1e-9, "{value}");
    }
}
