//! Sampling on all CPUs: one event and one link each, and the tables behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::Add as _;

use profiler_common::counters::Whose;
use profiler_common::limits::{MAX_KERNEL_FRAMES, MAX_USER_FRAMES};
use profiler_common::sample::TableLayout;
use profiler_common::tally::Fate;

use super::KernelError;
use super::accounting::{Accounting, Amount, CounterAccounting, Lost, expected};
use super::armed::Armed;
use super::idle::IdleTime;
use super::programs::{Filter, Layout, ProgramSize, Programs, Target};
use super::tables::{RawSample, Tables};
use super::unwind_maps::UnwindMaps;
use crate::events::{Counted, CpuId, EventSpec, HostFacts, Precise, Rate, Refusal, cpus};
use crate::types::Tgid;

/// How often the tables are drained, in times a second. The size of the tables follows from it.
pub const DRAINS_PER_SECOND: u32 = 5;

/// An event, and how it is sampled.
#[derive(Clone, Debug)]
pub struct SampledEvent {
    /// The event.
    pub spec: EventSpec,
    /// How often.
    pub rate: Rate,
    /// Precision the event was found to open with.
    pub precise: Precise,
}

impl SampledEvent {
    /// The frequency around which its periods are drawn by chance, if they are: a fixed period, and one that the kernel adapts to a fixed
    /// frequency, would meet a program that does the same in turns always at the same place. A period that was asked for stays what it is.
    pub(super) fn drawn_frequency(&self) -> Option<NonZeroU32> {
        match self.rate {
            Rate::Frequency(hertz) if self.spec.is_clock() || self.spec.is_counted_by_pmu() => Some(hertz),
            Rate::Frequency(_) | Rate::Period(_) => None,
        }
    }

    /// Whether a sample weighs what the event has counted since the last one. Clocks count also what modifiers keep them from sampling.
    fn has_counted_weights(&self) -> bool {
        let modifiers = self.spec.modifiers();
        let counts_more = self.spec.is_clock() && (modifiers.exclude_user() || modifiers.exclude_kernel());
        self.drawn_frequency().is_some() && !counts_more
    }

    /// Whether the kernel adapts its period and shows it too early: where it counts the event itself.
    fn has_late_periods(&self) -> bool {
        let is_adapted = matches!(self.rate, Rate::Frequency(_)) && !self.spec.is_clock();
        is_adapted && !self.spec.is_counted_by_pmu()
    }
}

/// What to sample, and where.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    /// The events that are sampled, the main one first; at most [`MAX_EVENTS`](profiler_common::limits::MAX_EVENTS).
    pub events: Vec<SampledEvent>,
    /// The events that are read at each sample of the main one; at most [`MAX_COUNTERS`](profiler_common::limits::MAX_COUNTERS).
    pub counters: Vec<EventSpec>,
    /// Which tasks.
    pub target: Target,
    /// What of them.
    pub filter: Filter,
    /// The CPUs asked for; `None` for all.
    pub cpus: Option<BTreeSet<CpuId>>,
    /// Bytes that unwind tables may take in the kernel.
    pub unwind_memory: u64,
    /// Sizes of the sample program that are treated as if the kernel refused them, the largest first: for tests.
    pub refuse: usize,
    /// What the host allows, for explaining a refusal.
    pub host: HostFacts,
}

/// Programs, tables and events. Dropping it detaches and closes everything.
pub struct Sampler {
    options: SamplerOptions,
    armed: BTreeMap<CpuId, Armed>,
    tables: Tables,
    programs: Programs,
    running: bool,
    /// What CPUs had counted that went offline, by event.
    retired: Vec<Counted>,
    /// As above, by counter.
    retired_counters: Vec<Counted>,
    /// By event.
    throttles: Vec<u64>,
    idle_time: IdleTime,
}

impl Sampler {
    /// Loads the programs and opens the events, disabled. The maps of unwind tables are for another to keep.
    ///
    /// The targets' children are followed from here on.
    pub fn load(options: SamplerOptions) -> Result<(Self, UnwindMaps), KernelError> {
        let cpu_limit = cpus::possible()?.last().map_or(1, |cpu| cpu.0 + 1);
        let layout = Layout {
            tables: table_layout(options.events.iter().map(|event| event.rate), cpu_limit),
            cpus: cpu_limit,
            counters: options.counters.len() as u32,
            late_periods: bits(&options.events, SampledEvent::has_late_periods),
            counted_weights: bits(&options.events, SampledEvent::has_counted_weights),
        };
        let mut programs = Programs::load(&options.target, &options.filter, layout, options.refuse)?;
        // A kernel's types take 50 MB for a moment, which glibc would keep to the end.
        #[cfg(target_env = "gnu")]
        // SAFETY: the function may be called at any time (malloc_trim(3)).
        unsafe {
            libc::malloc_trim(0)
        };
        let tables = Tables::map(&programs, layout)?;
        let unwind_maps = UnwindMaps::take(&mut programs, options.unwind_memory)?;
        let mut sampler = Self {
            retired: vec![Counted::default(); options.events.len()],
            retired_counters: vec![Counted::default(); options.counters.len()],
            throttles: vec![0; options.events.len()],
            options,
            armed: BTreeMap::new(),
            tables,
            programs,
            running: false,
            idle_time: IdleTime::default(),
        };
        sampler.follow_cpus(&cpus::online()?)?;
        if sampler.armed.is_empty() {
            return Err(KernelError::NoCpu);
        }
        Ok((sampler, unwind_maps))
    }

    /// What the sample program that the kernel took can do.
    pub fn program_size(&self) -> &ProgramSize {
        self.programs.size()
    }

    /// Adds targets: processes that existed when the following of children was armed.
    pub fn add_followed(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<(), KernelError> {
        self.programs.add_followed(ids)?;
        self.programs.note_mappings(None)
    }

    /// Tells the kernel side of what a process has mapped, before a sample has to look for it or takes what was there before.
    pub fn note_mappings(&mut self, tgid: Tgid) -> Result<(), KernelError> {
        self.programs.note_mappings(Some(tgid))
    }

    /// Starts sampling.
    pub fn start(&mut self) -> Result<(), KernelError> {
        self.draw_periods()?;
        self.running = true;
        self.idle_time = IdleTime::now();
        self.armed.values_mut().try_for_each(Armed::enable).map_err(KernelError::system("enabling an event"))
    }

    /// Stops sampling. What was sampled stays in the tables.
    pub fn stop(&mut self) -> Result<(), KernelError> {
        self.running = false;
        self.armed
            .values_mut()
            .try_for_each(Armed::disable)
            .map_err(KernelError::system("disabling an event"))
    }

    /// Opens events on CPUs that came online and lets go of those that went offline: the kernel does not take an event up again.
    pub fn follow_cpus(&mut self, online: &BTreeSet<CpuId>) -> Result<(), KernelError> {
        let wanted: BTreeSet<CpuId> = match &self.options.cpus {
            Some(asked) => asked.intersection(online).copied().collect(),
            None => online.clone(),
        };
        let gone: Vec<CpuId> = self.armed.keys().filter(|cpu| !wanted.contains(cpu)).copied().collect();
        for cpu in gone {
            self.retire(cpu);
        }
        for cpu in wanted {
            if !self.armed.contains_key(&cpu) {
                self.arm(cpu)?;
            }
        }
        Ok(())
    }

    /// The CPUs that are sampled.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.armed.keys().copied()
    }

    /// The lowest of the frequencies around which periods are [drawn](Self::draw_periods); `None` where none are.
    pub fn lowest_drawn_frequency(&self) -> Option<NonZeroU32> {
        self.options.events.iter().filter_map(SampledEvent::drawn_frequency).min()
    }

    /// Draws new periods for clocks and events of the PMU that are sampled by frequency, on each CPU its own.
    pub fn draw_periods(&mut self) -> Result<(), KernelError> {
        let Self { armed, options, .. } = self;
        armed
            .values_mut()
            .try_for_each(|armed| armed.draw_periods(&options.events))
            .map_err(KernelError::system("setting the period of an event"))
    }

    /// Changes tables: all samples from before the call are in those that the next [`Self::drain`] reads, once the programs that were running
    /// at the call [have ended](super::wait_for_running_programs).
    pub fn switch_tables(&mut self) {
        self.tables.switch();
    }

    /// Reads and empties the tables that were left.
    pub fn drain(&mut self, each: impl FnMut(&RawSample<'_>)) {
        self.tables.drain(each);
        self.drain_notices();
        self.programs.flush_log();
    }

    /// What became of everything that a sampled event counted so far, by its index.
    pub fn accounting(&mut self, event: usize) -> Accounting {
        self.drain_notices();
        let here = self.armed.values_mut().map(|armed| armed.counted(event));
        let counted = here.fold(self.retired[event], Counted::add);
        let spec = &self.options.events[event].spec;
        Accounting {
            kept: self.amount(event, Fate::Kept),
            not_target: self.amount(event, Fate::NotTarget),
            idle: self.amount(event, Fate::Idle),
            user_mode_left_out: self.amount(event, Fate::UserModeLeftOut),
            lost: self.lost(event).filter(|(_, amount)| amount.samples > 0).collect(),
            counted,
            expected: expected(spec, counted),
            counted_idle: if spec.is_clock() { self.idle_time.since_start(self.cpus()) } else { 0 },
            throttles: self.throttles[event],
            not_followed: self.tables.not_followed(),
        }
    }

    /// What a counter counted so far, by its index.
    pub fn counter_accounting(&mut self, counter: usize) -> CounterAccounting {
        let here = self.armed.values_mut().map(|armed| armed.counter_counted(counter));
        CounterAccounting {
            counted: here.fold(self.retired_counters[counter], Counted::add),
            others: self.tables.residual(Whose::Others, counter as u32),
            residual: self.tables.residual(Whose::Targets, counter as u32),
        }
    }

    /// Samples of the main event in the profile, and those lost so far. Unlike [`Self::accounting`] it asks the kernel nothing.
    pub fn kept_and_lost(&self) -> (Amount, Amount) {
        (self.amount(MAIN, Fate::Kept), self.lost(MAIN).map(|(_, amount)| amount).sum())
    }

    /// Takes over what the kernel noted in the events' rings, which are small: to be called at each drain.
    fn drain_notices(&mut self) {
        for armed in self.armed.values_mut() {
            armed.drain_throttles(&mut self.throttles);
        }
    }

    fn amount(&self, event: usize, fate: Fate) -> Amount {
        let (samples, weight) = self.tables.tally(event as u32, fate);
        Amount { samples, weight }
    }

    fn lost(&self, event: usize) -> impl Iterator<Item = (Lost, Amount)> {
        let causes = [
            (Lost::TableFull, Fate::TableFull),
            (Lost::FramesFull, Fate::FramesFull),
            (Lost::NoScratch, Fate::NoScratch),
        ];
        causes.into_iter().map(move |(cause, fate)| (cause, self.amount(event, fate)))
    }

    fn arm(&mut self, cpu: CpuId) -> Result<(), KernelError> {
        let SamplerOptions { events, counters, .. } = &self.options;
        let mut armed = match Armed::open(events, counters, cpu) {
            Ok(armed) => armed,
            // The CPU went offline since it was listed.
            Err(error) if error.errno() == libc::ENODEV && !cpus::online()?.contains(&cpu) => return Ok(()),
            Err(error) => return Err(Refusal::new(&error, &self.options.host).into()),
        };
        armed.attach(&mut self.programs)?;
        if self.running {
            armed.enable().map_err(KernelError::system("enabling an event"))?;
        }
        self.armed.insert(cpu, armed);
        Ok(())
    }

    fn retire(&mut self, cpu: CpuId) {
        if let Some(mut armed) = self.armed.remove(&cpu) {
            for (event, retired) in self.retired.iter_mut().enumerate() {
                *retired = *retired + armed.counted(event);
            }
            for (counter, retired) in self.retired_counters.iter_mut().enumerate() {
                *retired = *retired + armed.counter_counted(counter);
            }
            armed.drain_throttles(&mut self.throttles);
        }
    }
}

/// Index of the main event.
const MAIN: usize = 0;

/// The events, by bit, of which something is true.
fn bits(events: &[SampledEvent], is_true: impl Fn(&SampledEvent) -> bool) -> u32 {
    events.iter().enumerate().fold(0, |bits, (index, event)| bits | u32::from(is_true(event)) << index)
}

/// Bytes that the tables of all CPUs may take together.
const TABLES_BYTES: u64 = 256 << 20;

/// Tables that hold twice what comes between two drains, as far as the memory for all CPUs allows.
fn table_layout(rates: impl Iterator<Item = Rate>, cpus: u32) -> TableLayout {
    let per_second: u32 = rates
        .map(|rate| match rate {
            Rate::Frequency(hz) => hz.get(),
            // Unknown beforehand; equal stacks share a slot, so bursts of one breakpoint need few.
            Rate::Period(_) => 20_000,
        })
        .fold(0, u32::saturating_add);
    let slots = (per_second / DRAINS_PER_SECOND * 2).clamp(1 << 10, 1 << 14).next_power_of_two();
    let one_stack = MAX_USER_FRAMES + MAX_KERNEL_FRAMES;
    let fair_share = u32::try_from(TABLES_BYTES / 16 / u64::from(cpus)).unwrap_or(u32::MAX);
    let frames = (slots * 64).min(fair_share).max(16 * one_stack);
    TableLayout { slots, frames }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(hz: u32, cpus: u32) -> TableLayout {
        table_layout(std::iter::once(Rate::Frequency(NonZeroU32::new(hz).unwrap())), cpus)
    }

    #[test]
    fn tables_grow_with_the_rate_and_stay_bounded() {
        assert_eq!(layout(997, 2), TableLayout { slots: 1024, frames: 65_536 });
        assert!(layout(20_000, 2).slots > layout(997, 2).slots);
        assert!(u64::from(layout(100_000, 512).frames) * 16 * 512 <= TABLES_BYTES);
        assert!(layout(1, 8192).frames >= MAX_USER_FRAMES + MAX_KERNEL_FRAMES);
    }
}
