//! The event to sample: the one asked for or none; the default with its labelled stand-in.

use std::num::NonZeroU32;

use crate::cli::Options;
use crate::events::{CpuId, EventSpec, HostFacts, Precise, Rate, Refusal, cpus, find_precise};
use crate::kernel::KernelError;

/// The event that will be sampled.
pub(super) struct ChosenEvent {
    pub spec: EventSpec,
    pub rate: Rate,
    pub precise: Precise,
    pub host: HostFacts,
    /// Why it stands in for the default.
    pub fallback: Option<String>,
    /// What else was decided for the user.
    pub note: Option<String>,
}

/// Finds the event, by opening it on one CPU.
pub(super) fn choose(options: &Options) -> Result<ChosenEvent, KernelError> {
    let host = HostFacts::read();
    let online = cpus::online()?;
    let cpu = match &options.cpus {
        Some(asked) => *asked.intersection(&online).next().ok_or(KernelError::NoCpu)?,
        None => *online.first().ok_or(KernelError::NoCpu)?,
    };
    if let Some(spec) = &options.event {
        return Ok(open(spec.clone(), options, cpu, host)?);
    }
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

fn open(spec: EventSpec, options: &Options, cpu: CpuId, host: HostFacts) -> Result<ChosenEvent, Refusal> {
    let (rate, note) = match options.rate {
        Some(rate) => (rate, None),
        None => default_rate(&spec, &host),
    };
    let precise = find_precise(&spec, rate, cpu)?;
    Ok(ChosenEvent { spec, rate, precise, host, fallback: None, note })
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
