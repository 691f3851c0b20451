//! The events of one CPU, with the sample program attached.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::KernelError;
use super::link::PerfLink;
use super::programs::Programs;
use super::sampler::SampledEvent;
use crate::events::{Counted, CountingEvent, CpuId, EventSpec, OpenError, SamplingEvent, cpus_of};

/// The events of one CPU, by their index; those that do not count on this CPU are absent. The links go first.
pub(super) struct Armed {
    links: Vec<PerfLink>,
    events: BTreeMap<usize, SamplingEvent>,
    counters: BTreeMap<usize, CountingEvent>,
}

impl Armed {
    /// Opens the events on a CPU, disabled and without a program.
    pub(super) fn open(
        events: &[SampledEvent],
        counters: &[EventSpec],
        cpu: CpuId,
    ) -> Result<Self, OpenError> {
        let here = |spec: &EventSpec| !cpus_of(spec, &BTreeSet::from([cpu])).is_empty();
        let mut armed = Self { links: Vec::new(), events: BTreeMap::new(), counters: BTreeMap::new() };
        for (index, SampledEvent { spec, rate, precise }) in events.iter().enumerate() {
            if here(spec) {
                armed.events.insert(index, SamplingEvent::open(spec, *rate, cpu, *precise)?);
            }
        }
        for (index, spec) in counters.iter().enumerate() {
            if here(spec) {
                armed.counters.insert(index, CountingEvent::open(spec, cpu)?);
            }
        }
        Ok(armed)
    }

    /// Attaches the sample program to each event, with the event's index as cookie, and shows it the counters.
    pub(super) fn attach(&mut self, programs: &mut Programs) -> Result<(), KernelError> {
        for (&counter, event) in &self.counters {
            programs.set_counter(counter, event)?;
        }
        let program = programs.sample_program()?;
        for (&index, event) in &self.events {
            let link = PerfLink::create(program, event, index as u64)
                .map_err(KernelError::system("attaching the sample program"))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Draws new periods for the events that have random ones.
    pub(super) fn draw_periods(&mut self, events: &[SampledEvent]) -> io::Result<()> {
        for (&index, event) in &mut self.events {
            if let Some(hertz) = events[index].drawn_frequency() {
                event.draw_period(hertz)?;
            }
        }
        Ok(())
    }

    /// Starts counting, then sampling: a sample must find its counters at work.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        self.counters.values_mut().try_for_each(CountingEvent::enable)?;
        self.events.values_mut().try_for_each(SamplingEvent::enable)
    }

    /// Stops sampling, then counting.
    pub(super) fn disable(&mut self) -> io::Result<()> {
        self.events.values_mut().try_for_each(SamplingEvent::disable)?;
        self.counters.values_mut().try_for_each(CountingEvent::disable)
    }

    /// What a sampled event has counted here; nothing where it cannot be read.
    pub(super) fn counted(&mut self, event: usize) -> Counted {
        self.events.get_mut(&event).and_then(|event| event.read().ok()).unwrap_or_default()
    }

    /// What a counter has counted here; nothing where it cannot be read.
    pub(super) fn counter_counted(&mut self, counter: usize) -> Counted {
        self.counters.get_mut(&counter).and_then(|counter| counter.read().ok()).unwrap_or_default()
    }

    /// Adds the throttlings of each event since the last call. Their rings are small: to be called at each drain.
    pub(super) fn drain_throttles(&mut self, throttles: &mut [u64]) {
        for (&index, event) in &mut self.events {
            throttles[index] += event.drain_notices().throttles;
        }
    }
}
