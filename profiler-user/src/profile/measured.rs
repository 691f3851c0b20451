//! Which events were measured, by the names that metrics know them by.

use super::header::{Attribution, EventInfo, Header};
use super::metrics::Metric;
use super::model::EventId;
use super::statistics::Stream;
use super::sum::Sum;

/// The events of a profile that can be set against each other: those counted in the same modes as the main event.
#[derive(Debug)]
pub(super) struct Measured {
    /// Names without modifiers, by event; `None` for events that were counted in other modes.
    names: Vec<Option<String>>,
    /// Whether every occurrence was a sample, by event.
    exact: Vec<bool>,
}

impl Measured {
    pub(super) fn new(header: &Header) -> Self {
        let (_, main_modes) = split(&header.event.name);
        let names = header.events().map(|(_, event)| {
            let (name, modes) = split(&event.name);
            (modes == main_modes).then(|| name.to_owned())
        });
        Self { names: names.collect(), exact: header.events().map(|(_, event)| is_exact(event)).collect() }
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

    /// The samples of each event in one place, by the event's name.
    pub(super) fn streams(&self, part: &[Sum], whole: &[Sum]) -> impl Fn(&str) -> Option<Stream> {
        move |name| {
            let event = self.event(name)?;
            let (part, whole) = (part.get(event)?, whole.get(event)?);
            // An event without any sample says nothing: it may never have had a counter.
            (whole.samples > 0).then(|| part.stream(whole))
        }
    }
}

/// Name and modes of an event: `cycles:upp` is `cycles` in the mode `u`. Precision changes where an event lands, not what it counts.
fn split(event: &str) -> (&str, String) {
    let (name, modifiers) = event.split_once(':').unwrap_or((event, ""));
    (name, modifiers.chars().filter(|&letter| letter != 'p').collect())
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
}
