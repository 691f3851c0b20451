//! The events of a run: those asked for or none; the default with its labelled stand-in.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use profiler_common::limits::{MAX_COUNTERS, MAX_EVENTS};

use crate::cli::Options;
use crate::events::{
    CpuId, EventList, EventSet, EventSpec, HostFacts, ListedEvent, Rate, Refusal, cpus, find_counting,
    find_precise, fitting, trial_cpus,
};
use crate::kernel::{KernelError, SampledEvent};
use crate::profile::{Attribution, MissingCounter};

/// The events that will be sampled and counted.
pub(super) struct ChosenEvents {
    /// The event that is sampled.
    pub main: SampledEvent,
    /// Why it stands in for the default.
    pub fallback: Option<String>,
    /// Counters, in the order of the profile.
    pub counters: ChosenCounters,
    /// Events of a set that are not here.
    pub missing: Vec<MissingCounter>,
    pub host: HostFacts,
    /// What else was decided for the user.
    pub notes: Vec<String>,
}

/// Counters by how their counts reach functions.
pub(super) enum ChosenCounters {
    /// By their own overflow.
    Sampled(Vec<SampledEvent>),
    /// By being read at samples of the main event.
    Read(Vec<EventSpec>),
}

/// Why the events cannot be used together.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    /// One cannot be opened.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// More than the kernel side has room for.
    #[error("--counters names {asked} events, and bpfprof measures at most {most} at a time; name fewer")]
    TooMany { asked: usize, most: u32 },
}

impl EventsError {
    /// The cause alone.
    fn cause(&self) -> String {
        match self {
            Self::Kernel(KernelError::Event(refusal)) => refusal.cause().into(),
            other => other.to_string(),
        }
    }
}

impl From<Refusal> for EventsError {
    fn from(refusal: Refusal) -> Self {
        Self::Kernel(refusal.into())
    }
}

impl ChosenEvents {
    /// All sampled events, the main one first.
    pub(super) fn sampled(&self) -> Vec<SampledEvent> {
        let counters = match &self.counters {
            ChosenCounters::Sampled(counters) => counters.as_slice(),
            ChosenCounters::Read(_) => &[],
        };
        std::iter::once(&self.main).chain(counters).cloned().collect()
    }

    /// The names of all events, in the order of the profile.
    pub(super) fn names(&self) -> Vec<String> {
        let sampled = self.sampled().into_iter().map(|event| event.spec.to_string());
        sampled.chain(self.read().iter().map(EventSpec::to_string)).collect()
    }

    /// The counters that are read at samples.
    pub(super) fn read(&self) -> &[EventSpec] {
        match &self.counters {
            ChosenCounters::Sampled(_) => &[],
            ChosenCounters::Read(counters) => counters,
        }
    }
}

/// Finds the events, by opening them on one CPU of each type.
pub(super) fn choose(options: &Options) -> Result<ChosenEvents, EventsError> {
    let host = HostFacts::read();
    let online = cpus::online().map_err(KernelError::from)?;
    let cpus: BTreeSet<CpuId> = match &options.cpus {
        Some(asked) => asked.intersection(&online).copied().collect(),
        None => online,
    };
    if cpus.is_empty() {
        return Err(KernelError::NoCpu.into());
    }
    let mut chosen = choose_main(options, &cpus, host)?;
    let asked = options.counters.clone().unwrap_or_else(|| default_counters(&chosen));
    choose_counters(&mut chosen, &asked, options.attribution, &cpus)?;
    Ok(chosen)
}

fn choose_main(
    options: &Options,
    cpus: &BTreeSet<CpuId>,
    host: HostFacts,
) -> Result<ChosenEvents, KernelError> {
    if let Some(spec) = &options.event {
        return Ok(open(spec.clone(), options, cpus, host)?);
    }
    match open(EventSpec::cycles(), options, cpus, host.clone()) {
        Err(refusal) if lacks_hardware(&refusal) => {
            let mut chosen = open(EventSpec::cpu_clock(), options, cpus, host)?;
            chosen.fallback = Some(format!("cpu-clock stands in for cycles: {}", refusal.cause()));
            Ok(chosen)
        }
        chosen => Ok(chosen?),
    }
}

/// Whether another event could open where this one did not. A missing permission or a bad rate would stop any.
fn lacks_hardware(refusal: &Refusal) -> bool {
    matches!(refusal.errno(), libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EBUSY)
}

fn open(
    spec: EventSpec,
    options: &Options,
    cpus: &BTreeSet<CpuId>,
    host: HostFacts,
) -> Result<ChosenEvents, Refusal> {
    let (rate, note) = match options.rate {
        Some(rate) => (rate, None),
        None => default_rate(&spec, &host),
    };
    let precise = find_precise(&spec, rate, cpus, &host)?;
    Ok(ChosenEvents {
        main: SampledEvent { spec, rate, precise },
        fallback: None,
        counters: ChosenCounters::Sampled(Vec::new()),
        missing: Vec::new(),
        host,
        notes: note.into_iter().collect(),
    })
}

/// The default rate, within what the kernel allows: only a rate that was asked for is refused.
fn default_rate(spec: &EventSpec, host: &HostFacts) -> (Rate, Option<String>) {
    let rate = spec.default_rate();
    let limit = host.max_sample_rate.and_then(|hz| NonZeroU32::try_from(u32::try_from(hz).ok()?).ok());
    match (rate, limit) {
        (Rate::Frequency(hz), Some(limit)) if limit < hz => {
            let note = format!(
                "sampled at {limit} Hz instead of {hz}: kernel.perf_event_max_sample_rate allows no more"
            );
            (Rate::Frequency(limit), Some(note))
        }
        _ => (rate, None),
    }
}

/// Ratios per function come with CPU time; who asks for another event by name gets that alone.
fn default_counters(chosen: &ChosenEvents) -> EventList {
    let wanted = chosen.main.spec.kind() == EventSpec::cycles().kind() || chosen.fallback.is_some();
    if wanted { EventList::of_set(EventSet::Default) } else { EventList::default() }
}

fn choose_counters(
    chosen: &mut ChosenEvents,
    asked: &EventList,
    attribution: Attribution,
    cpus: &BTreeSet<CpuId>,
) -> Result<(), EventsError> {
    let mut counters = match attribution {
        Attribution::Overflow => ChosenCounters::Sampled(Vec::new()),
        Attribution::Delta => ChosenCounters::Read(Vec::new()),
    };
    for ListedEvent { spec, set, .. } in asked.events() {
        if *spec == chosen.main.spec {
            continue;
        }
        if let Err(refusal) = counters.add(spec, chosen, cpus) {
            if set.is_none() {
                return Err(refusal);
            }
            chosen.missing.push(MissingCounter { name: spec.name(), reason: refusal.cause() });
        }
    }
    chosen.counters = counters;
    leave_out_what_does_not_fit(chosen, asked, cpus)?;
    let (asked, most) = match &chosen.counters {
        ChosenCounters::Sampled(counters) => (counters.len(), MAX_EVENTS - 1),
        ChosenCounters::Read(counters) => (counters.len(), MAX_COUNTERS),
    };
    if asked > most as usize {
        return Err(EventsError::TooMany { asked, most });
    }
    Ok(())
}

impl ChosenCounters {
    /// Adds a counter that opens.
    fn add(
        &mut self,
        spec: &EventSpec,
        chosen: &ChosenEvents,
        cpus: &BTreeSet<CpuId>,
    ) -> Result<(), EventsError> {
        match self {
            Self::Read(counters) => {
                find_counting(spec, cpus, &chosen.host)?;
                counters.push(spec.clone());
            }
            Self::Sampled(counters) => {
                let rate = counter_rate(spec, chosen.main.rate);
                let precise = find_precise(spec, rate, cpus, &chosen.host)?;
                counters.push(SampledEvent { spec: spec.clone(), rate, precise });
            }
        }
        Ok(())
    }

    fn keep(&mut self, kept: impl Fn(&EventSpec) -> bool) {
        match self {
            Self::Sampled(counters) => counters.retain(|counter| kept(&counter.spec)),
            Self::Read(counters) => counters.retain(kept),
        }
    }
}

/// Drops the last events of sets until the others have a counter all the time. Events that were asked for by name stay, and are scaled.
fn leave_out_what_does_not_fit(
    chosen: &mut ChosenEvents,
    asked: &EventList,
    cpus: &BTreeSet<CpuId>,
) -> Result<(), KernelError> {
    let mut specs: Vec<EventSpec> = chosen.sampled().into_iter().map(|event| event.spec).collect();
    specs.extend_from_slice(chosen.read());
    if specs.len() < 2 {
        return Ok(());
    }
    let Some(&cpu) = trial_cpus(&chosen.main.spec, cpus).first() else { return Ok(()) };
    let error = |error| KernelError::System { call: "trying how many events fit", error };
    let fits = fitting(&specs, cpu).map_err(error)?;
    let of_set =
        |spec: &EventSpec| asked.events().iter().any(|listed| listed.spec == *spec && listed.set.is_some());
    let beside_main = specs.iter().zip(fits).skip(1);
    let left_out: Vec<&EventSpec> =
        beside_main.filter(|&(spec, fits)| !fits && of_set(spec)).map(|(spec, _)| spec).collect();
    chosen.counters.keep(|spec| !left_out.contains(&spec));
    chosen.missing.extend(left_out.into_iter().map(|spec| MissingCounter {
        name: spec.name(),
        reason: "the PMU has no counter left for it; asked for by name it takes turns with the others".into(),
    }));
    Ok(())
}

/// Counters come a quarter as often as samples, so that a run with three of them costs less than twice as much as one without. Their
/// intervals say what that takes away.
fn counter_rate(spec: &EventSpec, main: Rate) -> Rate {
    match (spec.default_rate(), main) {
        (Rate::Frequency(own), main) => {
            let hz = if let Rate::Frequency(hz) = main { hz } else { own };
            Rate::Frequency(NonZeroU32::new(hz.get() / 4).unwrap_or(NonZeroU32::MIN))
        }
        (every, _) => every,
    }
}
