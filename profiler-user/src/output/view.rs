//! What is shown of a profile where a format leaves a choice.

use std::io;

use super::folded::Weight;
use crate::profile::metrics::{Metric, split_modifiers};
use crate::profile::{By, EventId, Inlines, Profile};

/// What is shown of a profile where a format leaves a choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// What the numbers of stacks are.
    pub weight: Weight,
    /// The event of folded stacks and flame graphs, as the header names it; `None` for the main one.
    pub event: Option<String>,
    /// What the rows of tables stand for.
    pub by: By,
    /// Which inlined functions have rows of their own.
    pub inlines: Inlines,
    /// Metrics of the table; `None` for all that the measured events are enough for.
    pub metrics: Option<Vec<&'static Metric>>,
    /// The metric that gives flame graphs their colours.
    pub color_by: Option<&'static Metric>,
}

/// A choice that a profile does not offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The event was not measured.
    #[error("--folded-event: {event} is not measured here; measured are {}", measured.join(", "))]
    Event {
        /// The event.
        event: String,
        /// Those that are.
        measured: Vec<String>,
    },
    /// A metric lacks an event.
    #[error("{metric} needs {missing}, which is not measured here; name it in --counters")]
    Metric {
        /// The metric.
        metric: &'static str,
        /// What it lacks.
        missing: String,
    },
}

impl View {
    /// Makes sure that events of these names are enough for what is to be shown.
    ///
    /// # Errors
    ///
    /// When they are not.
    pub fn check(&self, events: &[&str]) -> Result<(), ViewError> {
        if let Some(event) = self.event.as_ref().filter(|event| !events.contains(&event.as_str())) {
            let measured = events.iter().map(ToString::to_string).collect();
            return Err(ViewError::Event { event: event.clone(), measured });
        }
        let names: Vec<&str> = events.iter().map(|event| split_modifiers(event).0).collect();
        for metric in self.metrics.iter().flatten().chain(&self.color_by) {
            if let Some(missing) = metric.missing(&names) {
                return Err(ViewError::Metric { metric: metric.name, missing });
            }
        }
        Ok(())
    }

    /// The event of folded stacks and flame graphs in a profile.
    pub(super) fn event_in(&self, profile: &Profile) -> io::Result<EventId> {
        let Some(event) = &self.event else { return Ok(EventId::MAIN) };
        let found = profile.header.events().find(|(_, info)| info.name == *event);
        found.map(|(id, _)| id).ok_or_else(|| {
            let measured = profile.header.events().map(|(_, info)| info.name.clone()).collect();
            io::Error::other(ViewError::Event { event: event.clone(), measured })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_refused() {
        let metric = |name| Some(Metric::by_name(name).unwrap());
        let view = View { event: Some("page-faults".into()), ..View::default() };
        assert!(view.check(&["cycles", "page-faults"]).is_ok());
        let error = view.check(&["cycles"]).unwrap_err().to_string();
        assert_eq!(error, "--folded-event: page-faults is not measured here; measured are cycles");
        let view = View { color_by: metric("ipc"), ..View::default() };
        assert!(view.check(&["cycles:u", "instructions:u"]).is_ok());
        let error = view.check(&["cycles"]).unwrap_err().to_string();
        assert_eq!(error, "ipc needs instructions, which is not measured here; name it in --counters");
    }
}
