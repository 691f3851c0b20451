//! What the numbers of a function mean, in words.

use std::fmt;

use super::table::{BUSY, CLOCKS, STALLED};
use crate::profile::statistics::{Estimate, FEWEST_SAMPLES, Stream, ratio};

/// What slows a function down, as far as its samples prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One cause takes its share of the time.
    Bound(Cause),
    /// Several causes do.
    Mixed(Vec<Cause>),
    /// The core retires half of what it can or more, and nothing measured holds it up.
    Compute,
    /// The core waits, and nothing measured accounts for it.
    Stalled,
    /// No cause is there, and no more samples would make one.
    Ordinary,
    /// The intervals reach over a threshold: more samples would tell.
    Unclear,
    /// Too few samples of the time itself.
    TooFewSamples,
}

/// A cause that costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Loads that go to memory.
    Memory,
    /// Mispredicted branches.
    Branches,
    /// Instructions that arrive too late.
    FrontEnd,
    /// Page faults.
    PageFaults,
}

/// How a cause is told: its events, priced, against the time.
pub(super) struct Price {
    pub(super) cause: Cause,
    pub(super) event: &'static str,
    /// Events that measure time in the unit of `cost`.
    pub(super) time: &'static [&'static str],
    /// What each event costs, chosen low.
    pub(super) cost: f64,
    /// Share of the time from which on the function is bound by it.
    pub(super) share: f64,
    /// Overlap may hide the cost, so the cause is told only of a function whose IPC is bad.
    pub(super) needs_stalls: bool,
    /// Where cost and share come from.
    pub(super) source: &'static str,
}

pub(super) const PRICES: &[Price] = &[
    Price {
        cause: Cause::Memory,
        event: "LLC-load-misses",
        time: &["cycles"],
        cost: 200.0,
        share: 0.5,
        needs_stalls: true,
        source: "memory answers in 60 to 100 ns; an out-of-order core overlaps such waits, hence the high share",
    },
    Price {
        cause: Cause::Branches,
        event: "branch-misses",
        time: &["cycles"],
        cost: 15.0,
        share: 0.15,
        needs_stalls: false,
        source: "cost by A. Fog, share as the top-down method has it for bad speculation",
    },
    Price {
        cause: Cause::FrontEnd,
        event: "stalled-cycles-frontend",
        time: &["cycles"],
        cost: 1.0,
        share: 0.15,
        needs_stalls: false,
        source: "share as the top-down method has it",
    },
    Price {
        cause: Cause::PageFaults,
        event: "page-faults",
        time: CLOCKS,
        cost: 500.0,
        share: 0.2,
        needs_stalls: false,
        source: "a fault that needs no disk costs 0.5 µs or more",
    },
];

/// What the samples of a function say; `None` if nothing was measured that could be read.
///
/// Each event is priced at what it costs at least, and the cause is told if the nearer end of the interval reaches the share of the time
/// that `bpfprof help metrics` names. What was not measured is never told, and never excluded.
pub fn reading(samples: &impl Fn(&str) -> Option<Stream>) -> Option<Reading> {
    let priced: Vec<(&Price, Stream, Stream)> = PRICES
        .iter()
        .filter_map(|price| Some((price, samples(price.event)?, first_of(price.time, samples)?)))
        .collect();
    let speed = samples("instructions").zip(samples("cycles"));
    let times: Vec<Stream> =
        priced.iter().map(|&(_, _, time)| time).chain(speed.map(|(_, cycles)| cycles)).collect();
    if times.is_empty() {
        return None;
    }
    if times.iter().all(|time| time.samples < FEWEST_SAMPLES) {
        return Some(Reading::TooFewSamples);
    }
    let pace = speed.map(|(instructions, cycles)| Pace::of(ratio(instructions, cycles)));
    let verdicts: Vec<(Cause, Verdict)> = priced
        .iter()
        .map(|&(price, events, time)| (price.cause, price.verdict(ratio(events, time), pace)))
        .collect();
    let causes: Vec<Cause> =
        verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Told).map(|&(cause, _)| cause).collect();
    let is_open = verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Open);
    Some(match (causes.as_slice(), pace) {
        ([cause], _) => Reading::Bound(*cause),
        ([_, _, ..], _) => Reading::Mixed(causes),
        ([], _) if is_open => Reading::Unclear,
        ([], Some(Pace::Busy)) => Reading::Compute,
        ([], Some(Pace::Stalled)) => Reading::Stalled,
        ([], Some(Pace::Unknown)) => Reading::Unclear,
        ([], Some(Pace::Middling) | None) => Reading::Ordinary,
    })
}

fn first_of(names: &[&str], samples: &impl Fn(&str) -> Option<Stream>) -> Option<Stream> {
    names.iter().find_map(|name| samples(name))
}

/// Instructions per cycle, as far as the whole interval says so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Stalled,
    Middling,
    Busy,
    Unknown,
}

impl Pace {
    fn of(ipc: Option<Estimate>) -> Self {
        match ipc {
            Some(ipc) if ipc.high <= STALLED => Self::Stalled,
            Some(ipc) if ipc.low >= BUSY => Self::Busy,
            Some(ipc) if ipc.low > STALLED && ipc.high < BUSY => Self::Middling,
            _ => Self::Unknown,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The whole interval passes the threshold.
    Told,
    /// The whole interval is on this side of it.
    Excluded,
    /// Neither.
    Open,
}

impl Price {
    /// `rate` is that of the events to the time.
    fn verdict(&self, rate: Option<Estimate>, pace: Option<Pace>) -> Verdict {
        let Some(share) = rate.map(|rate| rate.scaled(self.cost)) else { return Verdict::Open };
        if share.high < self.share || (self.needs_stalls && matches!(pace, Some(Pace::Middling | Pace::Busy)))
        {
            return Verdict::Excluded;
        }
        let is_told = share.low >= self.share && (!self.needs_stalls || pace == Some(Pace::Stalled));
        if is_told { Verdict::Told } else { Verdict::Open }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(cause) => write!(f, "{}-bound", cause.word()),
            Self::Mixed(causes) => {
                let words: Vec<&str> = causes.iter().map(|cause| cause.word()).collect();
                write!(f, "mixed: {}", words.join(", "))
            }
            Self::Compute => f.write_str("compute-bound"),
            Self::Stalled => f.write_str("stalled"),
            Self::Ordinary => f.write_str("ordinary"),
            Self::Unclear => f.write_str("unclear"),
            Self::TooFewSamples => f.write_str("too few samples"),
        }
    }
}

impl Cause {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Branches => "branch",
            Self::FrontEnd => "front-end",
            Self::PageFaults => "fault",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of periods 1000 of cycles, instructions and clocks, and of 1 of the rest.
    fn read(counts: &[(&str, f64)]) -> Option<Reading> {
        reading(&|name: &str| {
            let &(_, samples) = counts.iter().find(|(event, _)| *event == name)?;
            let period = if ["cycles", "instructions", "cpu-clock"].contains(&name) { 1000.0 } else { 1.0 };
            Some(Stream { weight: samples * period, samples, period })
        })
    }

    fn word(counts: &[(&str, f64)]) -> String {
        read(counts).map(|reading| reading.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_cause_is_told() {
        let slow = [("cycles", 1000.0), ("instructions", 300.0)];
        let with = |extra: &[(&'static str, f64)]| word(&[&slow, extra].concat());
        // A million cycles: half of them are 2500 misses of 200, 15 % of them 10,000 mispredictions of 15.
        assert_eq!(with(&[("LLC-load-misses", 3000.0), ("branch-misses", 500.0)]), "memory-bound");
        assert_eq!(with(&[("LLC-load-misses", 100.0), ("branch-misses", 12_000.0)]), "branch-bound");
        assert_eq!(
            with(&[("LLC-load-misses", 3000.0), ("branch-misses", 12_000.0)]),
            "mixed: memory, branch"
        );
        assert_eq!(with(&[("stalled-cycles-frontend", 200_000.0)]), "front-end-bound");
        assert_eq!(with(&[("LLC-load-misses", 0.0), ("branch-misses", 0.0)]), "stalled");
        assert_eq!(word(&[("cpu-clock", 1000.0), ("page-faults", 500.0)]), "fault-bound");
        assert_eq!(word(&[("cpu-clock", 1000.0), ("page-faults", 100.0)]), "ordinary");
    }

    #[test]
    fn pace_alone_is_read_with_care() {
        let word = |instructions: f64| word(&[("cycles", 1000.0), ("instructions", instructions)]);
        assert_eq!(word(2500.0), "compute-bound");
        assert_eq!(word(2050.0), "unclear");
        assert_eq!(word(1500.0), "ordinary");
        assert_eq!(word(980.0), "unclear");
        assert_eq!(word(700.0), "stalled");
    }

    #[test]
    fn an_interval_over_the_threshold_tells_nothing() {
        let branches = |misses: f64| word(&[("cycles", 1000.0), ("branch-misses", misses)]);
        assert_eq!(branches(10_300.0), "unclear", "the estimate passes, the interval does not");
        assert_eq!(branches(11_500.0), "branch-bound");
        assert_eq!(branches(8_500.0), "ordinary");
        let clearer = |cycles: f64| word(&[("cycles", cycles), ("branch-misses", 10.9 * cycles)]);
        assert_eq!((&*clearer(100.0), &*clearer(10_000.0)), ("unclear", "branch-bound"));
    }

    #[test]
    fn misses_that_overlap_are_no_cause() {
        let misses = |instructions: f64| {
            word(&[("cycles", 1000.0), ("instructions", instructions), ("LLC-load-misses", 30_000.0)])
        };
        assert_eq!(
            (&*misses(300.0), &*misses(2500.0), &*misses(1000.0)),
            ("memory-bound", "compute-bound", "unclear")
        );
        assert_eq!(word(&[("cycles", 1000.0), ("LLC-load-misses", 30_000.0)]), "unclear");
    }

    #[test]
    fn little_is_told_of_little() {
        assert_eq!(read(&[("cycles", 9.0), ("instructions", 1000.0)]), Some(Reading::TooFewSamples));
        assert_eq!(word(&[("cpu-clock", 3.0), ("page-faults", 100.0)]), "too few samples");
        assert_eq!(read(&[("cycles", 1000.0)]), None);
        assert_eq!(read(&[]), None);
    }
}
