//! The events of a run: those asked for or none; the default with its labelled stand-in.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use profiler_common::limits::{MAX_COUNTERS, MAX_EVENTS};

use crate::cli::{Counters, Options};
use crate::events::{CountingEvent, CpuId, EventSpec, HostFacts, Rate, Refusal, cpus, cpus_of, find_precise};
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
    /// A counter that raises no interrupt.
    #[error("{refusal}; an event that only counts can be read at samples: --attribution delta")]
    OnlyCounts { refusal: Refusal },
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

    /// The counters that are read at samples.
    pub(super) fn read(&self) -> &[EventSpec] {
        match &self.counters {
            ChosenCounters::Sampled(_) => &[],
            ChosenCounters::Read(counters) => counters,
        }
    }
}

/// Finds the events, by opening them on one CPU.
pub(super) fn choose(options: &Options) -> Result<ChosenEvents, EventsError> {
    let host = HostFacts::read();
    let online = cpus::online().map_err(KernelError::from)?;
    let cpus: BTreeSet<CpuId> = match &options.cpus {
        Some(asked) => asked.intersection(&online).copied().collect(),
        None => online,
    };
    let mut chosen = choose_main(options, &cpus, host)?;
    let asked = options.counters.clone().unwrap_or_else(|| default_counters(&chosen));
    choose_counters(&mut chosen, asked, options.attribution, &cpus)?;
    Ok(chosen)
}

/// The CPU to try an event on.
fn trial_cpu(spec: &EventSpec, cpus: &BTreeSet<CpuId>) -> Result<CpuId, KernelError> {
    // Where it counts on none of them, opening it says so.
    cpus_of(spec, cpus).first().or(cpus.first()).copied().ok_or(KernelError::NoCpu)
}

fn choose_main(
    options: &Options,
    cpus: &BTreeSet<CpuId>,
    host: HostFacts,
) -> Result<ChosenEvents, KernelError> {
    if let Some(spec) = &options.event {
        return Ok(open(spec.clone(), options, trial_cpu(spec, cpus)?, host)?);
    }
    let cpu = *cpus.first().ok_or(KernelError::NoCpu)?;
    match open(EventSpec::cycles(), options, cpu, host.clone()) {
        Err(refusal) if lacks_hardware(&refusal) => {
            let mut chosen = open(EventSpec::cpu_clock(), options, cpu, host)?;
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

fn open(spec: EventSpec, options: &Options, cpu: CpuId, host: HostFacts) -> Result<ChosenEvents, Refusal> {
    let (rate, note) = match options.rate {
        Some(rate) => (rate, None),
        None => default_rate(&spec, &host),
    };
    let precise = find_precise(&spec, rate, cpu)?;
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
fn default_counters(chosen: &ChosenEvents) -> Counters {
    let wanted = chosen.main.spec.kind() == EventSpec::cycles().kind() || chosen.fallback.is_some();
    if wanted { Counters::default_set() } else { Counters { events: Vec::new(), is_set: true } }
}

fn choose_counters(
    chosen: &mut ChosenEvents,
    asked: Counters,
    attribution: Attribution,
    cpus: &BTreeSet<CpuId>,
) -> Result<(), EventsError> {
    let (mut sampled, mut read) = (Vec::new(), Vec::new());
    for spec in asked.events {
        let known = |spec: &EventSpec| {
            sampled.iter().any(|event: &SampledEvent| event.spec == *spec) || read.contains(spec)
        };
        if spec == chosen.main.spec || known(&spec) {
            continue;
        }
        let cpu = trial_cpu(&spec, cpus)?;
        let refusal = match attribution {
            Attribution::Overflow => {
                let rate = counter_rate(&spec, chosen.main.rate);
                match find_precise(&spec, rate, cpu) {
                    Ok(precise) => {
                        sampled.push(SampledEvent { spec, rate, precise });
                        continue;
                    }
                    Err(refusal) => refusal,
                }
            }
            Attribution::Delta => match CountingEvent::open(&spec, cpu) {
                Ok(_) => {
                    read.push(spec);
                    continue;
                }
                Err(error) => Refusal::new(&error, &chosen.host),
            },
        };
        if !asked.is_set {
            let only_counts = attribution == Attribution::Overflow && CountingEvent::open(&spec, cpu).is_ok();
            return Err(if only_counts { EventsError::OnlyCounts { refusal } } else { refusal.into() });
        }
        chosen.missing.push(MissingCounter { name: spec.to_string(), reason: refusal.cause().into() });
    }
    let (asked, most) = match attribution {
        Attribution::Overflow => (sampled.len(), MAX_EVENTS - 1),
        Attribution::Delta => (read.len(), MAX_COUNTERS),
    };
    if asked > most as usize {
        return Err(EventsError::TooMany { asked, most });
    }
    chosen.counters = match attribution {
        Attribution::Overflow => ChosenCounters::Sampled(sampled),
        Attribution::Delta => ChosenCounters::Read(read),
    };
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
