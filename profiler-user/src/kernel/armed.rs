//! The events of one CPU, with the sample program attached.

use std::io;

use super::KernelError;
use super::link::PerfLink;
use super::programs::Programs;
use super::sampler::SampledEvent;
use crate::events::{Counted, CountingEvent, CpuId, EventSpec, OpenError, SamplingEvent};

/// The events of one CPU. The links go first.
pub(super) struct Armed {
    links: Vec<PerfLink>,
    events: Vec<SamplingEvent>,
    counters: Vec<CountingEvent>,
}

impl Armed {
    /// Opens the events on a CPU, disabled and without a program.
    pub(super) fn open(
        events: &[SampledEvent],
        counters: &[EventSpec],
        cpu: CpuId,
    ) -> Result<Self, OpenError> {
        let events =
            events.iter().map(|event| SamplingEvent::open(&event.spec, event.rate, cpu, event.precise));
        let counters = counters.iter().map(|spec| CountingEvent::open(spec, cpu));
        Ok(Self {
            links: Vec::new(),
            events: events.collect::<Result<_, _>>()?,
            counters: counters.collect::<Result<_, _>>()?,
        })
    }

    /// Attaches the sample program to each event, with the event's index as cookie, and shows it the counters.
    pub(super) fn attach(&mut self, programs: &mut Programs) -> Result<(), KernelError> {
        for (counter, event) in self.counters.iter().enumerate() {
            programs.set_counter(counter as u32, event)?;
        }
        let program = programs.sample_program()?;
        for (index, event) in self.events.iter().enumerate() {
            let link = PerfLink::create(program, event, index as u64)
                .map_err(KernelError::system("attaching the sample program"))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Starts counting, then sampling: a sample must find its counters at work.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        self.counters.iter_mut().try_for_each(CountingEvent::enable)?;
        self.events.iter_mut().try_for_each(SamplingEvent::enable)
    }

    /// Stops sampling, then counting.
    pub(super) fn disable(&mut self) -> io::Result<()> {
        self.events.iter_mut().try_for_each(SamplingEvent::disable)?;
        self.counters.iter_mut().try_for_each(CountingEvent::disable)
    }

    /// What an event, or behind the events a counter, has counted; nothing where it cannot be read.
    pub(super) fn counted(&mut self, index: usize) -> Counted {
        let events = self.events.len();
        let read = match self.events.get_mut(index) {
            Some(event) => event.read(),
            None => match self.counters.get_mut(index - events) {
                Some(counter) => counter.read(),
                None => return Counted::default(),
            },
        };
        read.unwrap_or_default()
    }

    /// Adds the throttlings of each event since the last call. Their rings are small: to be called at each drain.
    pub(super) fn drain_throttles(&mut self, throttles: &mut [u64]) {
        for (event, throttles) in self.events.iter_mut().zip(throttles) {
            *throttles += event.drain_notices().throttles;
        }
    }
}
