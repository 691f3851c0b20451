//! Why an event cannot be sampled or counted here, and what can be done.

use super::advice::{Advice, explain};
use super::cpus::CpuId;
use super::host_facts::HostFacts;
use super::open_error::{OpenError, Purpose};
use super::precise::Precise;
use super::rate::Rate;
use super::spec::{EventKind, EventSpec};

/// Why an event cannot be sampled or counted here: one sentence of cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {purpose} `{event}`: {cause}; {remedy}")]
pub struct Refusal {
    event: EventSpec,
    purpose: Purpose,
    errno: i32,
    cause: String,
    remedy: String,
}

impl Refusal {
    /// Explains the kernel's answer by what was asked and by the facts of the host.
    pub fn new(error: &OpenError, facts: &HostFacts) -> Self {
        let Advice { cause, remedy } = explain(error, facts);
        Self { event: error.event.clone(), purpose: error.purpose, errno: error.errno(), cause, remedy }
    }

    /// The rate is one that the kernel accepts but does not keep, so that weights would be wrong.
    pub(super) fn of_rate(event: &EventSpec, rate: Rate) -> Option<Self> {
        let too_fast = match rate {
            Rate::Frequency(hertz) => u64::from(hertz.get()) > NS_PER_SECOND / SHORTEST_CLOCK_PERIOD_NS,
            Rate::Period(period) => period.get() < SHORTEST_CLOCK_PERIOD_NS,
        };
        (event.is_clock() && too_fast).then(|| {
            let cause =
                format!("the kernel samples a clock every {SHORTEST_CLOCK_PERIOD_NS} ns at the fastest");
            let purpose = Purpose::Sample { rate, precise: Precise::ARBITRARY_SKID };
            Self::without_asking(
                event,
                purpose,
                libc::EINVAL,
                cause,
                "use a longer period, or a lower frequency",
            )
        })
    }

    /// The event can be counted, and raises no samples that a program could take.
    pub(super) fn of_counted_only(event: &EventSpec, purpose: Purpose) -> Self {
        let cause = match event.kind() {
            EventKind::Tracepoint(_) => "the kernel runs no sampling program at a tracepoint",
            _ => "its PMU counts, and raises no samples",
        };
        let remedy = "count it beside another event with --counters and --attribution delta";
        Self::without_asking(event, purpose, libc::EINVAL, cause.to_owned(), remedy)
    }

    /// The event is counted for several CPUs at once.
    pub(super) fn of_shared(event: &EventSpec, purpose: Purpose) -> Self {
        let cause = "its PMU counts for several CPUs at once, so that no function can be charged with it";
        let remedy = "measure it for the whole machine with `perf stat -a`";
        Self::without_asking(event, purpose, libc::EOPNOTSUPP, cause.to_owned(), remedy)
    }

    /// The CPU's PMU takes a precise level and ignores it.
    pub(super) fn of_precise(event: &EventSpec, rate: Rate, precise: Precise) -> Self {
        let cause = "this CPU's PMU has no precise levels".to_owned();
        Self::without_asking(
            event,
            Purpose::Sample { rate, precise },
            libc::EOPNOTSUPP,
            cause,
            "leave `p` out",
        )
    }

    /// The event.
    pub fn event(&self) -> &EventSpec {
        &self.event
    }

    /// The kernel's errno, or the one it should have given.
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// The cause alone, such as "this virtual machine exposes no hardware PMU".
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// The remedy alone, an imperative such as "use -e cpu-clock".
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The same refusal, by one type of core where there are several.
    pub(super) fn on_cpu(mut self, cpu: CpuId) -> Self {
        self.cause = format!("on CPU {cpu}: {}", self.cause);
        self
    }

    fn without_asking(event: &EventSpec, purpose: Purpose, errno: i32, cause: String, remedy: &str) -> Self {
        Self { event: event.clone(), purpose, errno, cause, remedy: remedy.to_owned() }
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// `perf_swevent_start_hrtimer()` raises shorter periods to this, and a sample still reports the short one
/// (kernel/events/core.c).
const SHORTEST_CLOCK_PERIOD_NS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::super::Failure;
    use super::*;
    use std::num::{NonZeroU32, NonZeroU64};

    #[test]
    fn rates_that_the_kernel_would_not_keep() {
        let refusal = |event: &str, rate| {
            Refusal::of_rate(&event.parse().unwrap(), rate).map(|found| found.to_string())
        };
        let period = |ns| Rate::Period(NonZeroU64::new(ns).unwrap());
        let hertz = |hertz| Rate::Frequency(NonZeroU32::new(hertz).unwrap());
        assert!(refusal("cpu-clock", period(9_999)).unwrap().contains("every 10000 ns"));
        assert!(refusal("task-clock", hertz(100_001)).unwrap().contains("lower frequency"));
        assert_eq!(refusal("cpu-clock", period(10_000)), None);
        assert_eq!(refusal("cpu-clock", hertz(100_000)), None);
        assert_eq!(refusal("page-faults", period(1)), None);
    }

    #[test]
    fn the_kernels_answer_is_kept_beside_the_words() {
        let event = EventSpec::cycles();
        let error = OpenError {
            event: event.clone(),
            cpu: CpuId(0),
            purpose: Purpose::Sample { rate: event.default_rate(), precise: Precise::ARBITRARY_SKID },
            failure: Failure::Open { errno: libc::ENOENT },
        };
        let refusal = Refusal::new(&error, &HostFacts { has_core_pmu: Some(false), ..HostFacts::default() });
        assert_eq!((refusal.event(), refusal.errno()), (&event, libc::ENOENT));
        assert!(refusal.clone().on_cpu(CpuId(9)).cause().starts_with("on CPU 9: this machine"));
        assert_eq!(refusal.cause(), "this machine exposes no hardware PMU");
        assert!(refusal.remedy().starts_with("use -e cpu-clock"));
        assert_eq!(
            refusal.to_string(),
            format!("cannot sample `cycles`: {}; {}", refusal.cause(), refusal.remedy())
        );
    }

    #[test]
    fn ignored_precise_levels() {
        let event: EventSpec = "cycles:p".parse().unwrap();
        let refusal = Refusal::of_precise(&event, event.default_rate(), Precise::new(1).unwrap());
        assert_eq!(
            refusal.to_string(),
            "cannot sample `cycles:p`: this CPU's PMU has no precise levels; leave `p` out"
        );
    }
}
