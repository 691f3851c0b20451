//! Whether and how precisely an event can be sampled here.

use super::advice::invalid_rate;
use super::counting::CountingEvent;
use super::cpus::CpuId;
use super::host_facts::HostFacts;
use super::open_error::{Failure, OpenError, Purpose};
use super::placement::{is_shared, trial_cpus};
use super::precise::Precise;
use super::rate::Rate;
use super::refusal::Refusal;
use super::sampling::SamplingEvent;
use super::spec::{EventKind, EventSpec};
use std::collections::BTreeSet;

/// The precise level to open the event with on every one of the CPUs, found by opening it on one of each type.
///
/// It is the level that the modifier asks for. Without one it is the highest that opens for an event of the
/// PMU, and 0 for any other. Nothing stays open. There must be a CPU; the facts explain a refusal.
///
/// # Errors
/// The event cannot be sampled here, at the level asked for, or at this rate.
pub fn find_precise(
    spec: &EventSpec,
    rate: Rate,
    cpus: &BTreeSet<CpuId>,
    facts: &HostFacts,
) -> Result<Precise, Refusal> {
    if let Some(refusal) = Refusal::of_rate(spec, rate) {
        return Err(refusal);
    }
    let levels = levels(spec, rate)?;
    if is_shared(spec) {
        let purpose = Purpose::Sample { rate, precise: Precise::ARBITRARY_SKID };
        return Err(Refusal::of_shared(spec, purpose));
    }
    let trials = trial_cpus(spec, cpus);
    let [best, ..] = Precise::LADDER;
    // The lowest level that is found opens on every type of core.
    trials.iter().try_fold(best, |lowest, &cpu| {
        match first_to_open(&levels, |precise| open(spec, rate, cpu, precise)) {
            Ok(level) => Ok(lowest.min(level)),
            Err(error) if trials.len() > 1 => Err(refuse(&error, facts).on_cpu(cpu)),
            Err(error) => Err(refuse(&error, facts)),
        }
    })
}

/// Whether the event can be counted on every one of the CPUs for what they run, found by opening it on one of each type.
///
/// # Errors
/// It cannot be counted here, or not by CPU.
pub fn find_counting(spec: &EventSpec, cpus: &BTreeSet<CpuId>, facts: &HostFacts) -> Result<(), Refusal> {
    if is_shared(spec) {
        return Err(Refusal::of_shared(spec, Purpose::Count));
    }
    let mut trials = trial_cpus(spec, cpus).into_iter();
    trials
        .try_for_each(|cpu| CountingEvent::open(spec, cpu).map(drop))
        .map_err(|error| Refusal::new(&error, facts))
}

/// Explains the error; where counting would do, that is the remedy.
fn refuse(error: &OpenError, facts: &HostFacts) -> Refusal {
    if raises_no_samples(error, facts) && CountingEvent::open(&error.event, error.cpu).is_ok() {
        return Refusal::of_counted_only(&error.event, error.purpose);
    }
    Refusal::new(error, facts)
}

/// Whether the answer is the one that the kernel has for events that it can only count: `EOPNOTSUPP` for a PMU that cannot interrupt,
/// `EINVAL` from the drivers of most other PMUs and at tracepoints. The latter has other causes too.
fn raises_no_samples(error: &OpenError, facts: &HostFacts) -> bool {
    match (error.errno(), error.event.kind()) {
        (libc::EOPNOTSUPP, _) => error.purpose.precise() == Precise::ARBITRARY_SKID,
        (libc::EINVAL, EventKind::Pmu(_) | EventKind::Tracepoint(_)) => {
            error.purpose.rate().is_none_or(|rate| invalid_rate(rate, facts).is_none())
        }
        _ => false,
    }
}

/// Opens and closes the event. At a tracepoint this succeeds, but the kernel refuses the sampling program: programs of type
/// `PERF_EVENT` run for other events only (`perf_event_set_bpf_prog()`, kernel/events/core.c).
fn open(spec: &EventSpec, rate: Rate, cpu: CpuId, precise: Precise) -> Result<(), OpenError> {
    SamplingEvent::open(spec, rate, cpu, precise)?;
    if !matches!(spec.kind(), EventKind::Tracepoint(_)) {
        return Ok(());
    }
    let purpose = Purpose::Sample { rate, precise };
    Err(OpenError { event: spec.clone(), cpu, purpose, failure: Failure::Open { errno: libc::EINVAL } })
}

/// x86 alone has precise levels. The PMUs of aarch64 take `precise_ip` and ignore it, so a level there would
/// be a lie.
const PMU_HAS_PRECISE_LEVELS: bool = cfg!(target_arch = "x86_64");

/// The levels to try, the best one first; never empty.
fn levels(spec: &EventSpec, rate: Rate) -> Result<Vec<Precise>, Refusal> {
    match spec.modifiers().precise() {
        Some(level) if !PMU_HAS_PRECISE_LEVELS => Err(Refusal::of_precise(spec, rate, level)),
        Some(level) => Ok(vec![level]),
        None if spec.is_counted_by_pmu() && PMU_HAS_PRECISE_LEVELS => Ok(Precise::LADDER.to_vec()),
        None => Ok(vec![Precise::ARBITRARY_SKID]),
    }
}

/// The first level that opens, or the error of the last one.
fn first_to_open(
    levels: &[Precise],
    mut open: impl FnMut(Precise) -> Result<(), OpenError>,
) -> Result<Precise, OpenError> {
    let (last, better) = levels.split_last().unwrap_or((&Precise::ARBITRARY_SKID, &[]));
    match better.iter().find(|&&precise| open(precise).is_ok()) {
        Some(&precise) => Ok(precise),
        None => open(*last).map(|()| *last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::{NonZeroU32, NonZeroU64};

    fn level(level: u8) -> Precise {
        Precise::new(level).unwrap()
    }

    fn find(spec: &EventSpec, rate: Rate) -> Result<Precise, Refusal> {
        find_precise(spec, rate, &[CpuId(0)].into(), &HostFacts::read())
    }

    fn refused(precise: Precise) -> OpenError {
        let event = EventSpec::cycles();
        let purpose = Purpose::Sample { rate: event.default_rate(), precise };
        OpenError { event, cpu: CpuId(0), purpose, failure: Failure::Open { errno: libc::EOPNOTSUPP } }
    }

    #[test]
    fn the_highest_level_that_opens_is_taken() {
        let mut tried = Vec::new();
        let found = first_to_open(&Precise::LADDER, |precise| {
            tried.push(precise.level());
            if precise <= level(2) { Ok(()) } else { Err(refused(precise)) }
        });
        assert_eq!((found, tried), (Ok(level(2)), vec![3, 2]));
        assert_eq!(first_to_open(&Precise::LADDER, |precise| Err(refused(precise))), Err(refused(level(0))));
        assert_eq!(first_to_open(&[level(1)], |precise| Err(refused(precise))), Err(refused(level(1))));
    }

    #[test]
    fn only_events_of_the_pmu_climb_the_ladder() {
        let levels = |event: &str| levels(&event.parse().unwrap(), Rate::DEFAULT_FREQUENCY);
        for event in ["cpu-clock", "page-faults:u", "mem:16:x"] {
            assert_eq!(levels(event), Ok(vec![level(0)]));
        }
        if PMU_HAS_PRECISE_LEVELS {
            assert_eq!(levels("instructions"), Ok(Precise::LADDER.to_vec()));
            assert_eq!(levels("LLC-loads:upp"), Ok(vec![level(2)]));
        } else {
            assert_eq!(levels("instructions"), Ok(vec![level(0)]));
            assert!(levels("LLC-loads:upp").is_err());
        }
    }

    #[test]
    fn what_every_machine_can_sample() {
        for event in ["cpu-clock", "page-faults", "context-switches", "mem:0x401130:x:u", "mem:0x401000:rw"] {
            let spec: EventSpec = event.parse().unwrap();
            assert_eq!(find(&spec, spec.default_rate()), Ok(level(0)), "{event}");
        }
    }

    #[test]
    fn hardware_events_are_answered_or_refused_for_the_right_cause() {
        let has_pmu = HostFacts::read().has_core_pmu == Some(true);
        for spec in [EventSpec::cycles(), "cycles:ppp".parse().unwrap(), "LLC-load-misses".parse().unwrap()] {
            match find(&spec, spec.default_rate()) {
                Ok(_) => assert!(has_pmu, "{spec} opened without a PMU"),
                Err(refusal) => {
                    let says_no_pmu = refusal.cause().contains("exposes no hardware PMU");
                    assert_eq!(
                        says_no_pmu,
                        !has_pmu && (PMU_HAS_PRECISE_LEVELS || spec.modifiers().precise().is_none())
                    );
                    assert_eq!(
                        says_no_pmu,
                        refusal.remedy().contains("use -e cpu-clock, or run on bare metal")
                    );
                }
            }
        }
    }

    #[test]
    fn rates_out_of_range_are_refused_in_words() {
        let page_faults: EventSpec = "page-faults".parse().unwrap();
        let text = |spec: &EventSpec, rate| find(spec, rate).unwrap_err().to_string();
        let frequency = text(&page_faults, Rate::Frequency(NonZeroU32::MAX));
        assert!(
            frequency.contains("4294967295 Hz is above kernel.perf_event_max_sample_rate"),
            "{frequency}"
        );
        let by_terms = text(&"software/config=2/".parse().unwrap(), Rate::Frequency(NonZeroU32::MAX));
        assert!(by_terms.contains("kernel.perf_event_max_sample_rate"), "{by_terms}");
        let period = text(&page_faults, Rate::Period(NonZeroU64::MAX));
        assert!(period.contains("is above 9223372036854775807"), "{period}");
        assert!(text(&EventSpec::cpu_clock(), Rate::EVERY).contains("10000 ns"));
    }

    #[test]
    fn what_counts_may_be_no_more_than_counted() {
        let count =
            |event: &str| find_counting(&event.parse().unwrap(), &[CpuId(0)].into(), &HostFacts::read());
        assert_eq!((count("page-faults"), count("mem:0x401130:x")), (Ok(()), Ok(())));
        let refusal = count("no_such_pmu/event=1/").unwrap_err();
        assert!(
            refusal.to_string().starts_with("cannot count `no_such_pmu/event=0x1/`: this machine"),
            "{refusal}"
        );
    }

    #[test]
    fn which_answers_speak_of_a_pmu_that_only_counts() {
        let speaks = |event: &str, errno, precise| {
            let event: EventSpec = event.parse().unwrap();
            let purpose = Purpose::Sample { rate: event.default_rate(), precise: level(precise) };
            let error = OpenError { event, cpu: CpuId(0), purpose, failure: Failure::Open { errno } };
            raises_no_samples(&error, &HostFacts::default())
        };
        assert!(speaks("cycles", libc::EOPNOTSUPP, 0));
        assert!(!speaks("cycles", libc::EOPNOTSUPP, 1));
        assert!(speaks("msr/tsc/", libc::EINVAL, 0));
        assert!(!speaks("r01c4", libc::EINVAL, 0));
        assert!(!speaks("cycles", libc::ENOENT, 0));
    }

    #[test]
    fn what_only_counts_is_refused_with_what_works() {
        // Every x86 has the timestamp counter.
        let tsc: EventSpec = "msr/tsc/".parse().unwrap();
        match CountingEvent::open(&tsc, CpuId(0)) {
            Ok(_) => {
                let refusal = find(&tsc, tsc.default_rate()).unwrap_err();
                assert_eq!(refusal.cause(), "its PMU counts, and raises no samples");
                assert!(refusal.remedy().contains("--counters"), "{refusal}");
            }
            Err(error) => assert!(matches!(error.failure, Failure::Unknown { .. }), "{error}"),
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn misaligned_breakpoints_are_refused_in_words() {
        let spec: EventSpec = "mem:0x401001/8:w".parse().unwrap();
        let refusal = find(&spec, spec.default_rate()).unwrap_err();
        assert!(refusal.cause().contains("not a multiple of the length 8"), "{refusal}");
    }
}
