//! The formulas.

use super::metric::{Marks, Metric};

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Per cycle.
    PerCycle,
    /// Per 1000 instructions.
    PerThousandInstructions,
    /// A part of a whole, 0 to 1; shown in per cent.
    Share,
    /// Per second of CPU time.
    PerSecond,
    /// Thousand million cycles a second.
    Gigahertz,
}

impl Unit {
    /// How many of the unit one of the numerator against one of the denominator is; clocks count nanoseconds.
    #[must_use]
    pub fn factor(self) -> f64 {
        match self {
            Self::PerCycle | Self::Share | Self::Gigahertz => 1.0,
            Self::PerThousandInstructions => 1000.0,
            Self::PerSecond => 1e9,
        }
    }

    /// The unit in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::PerCycle => "per cycle",
            Self::PerThousandInstructions => "per 1000 instructions",
            Self::Share => "as a share",
            Self::PerSecond => "per second of CPU time",
            Self::Gigahertz => "GHz",
        }
    }
}

/// Time on the CPU in nanoseconds.
pub(super) const CLOCKS: &[&str] = &["task-clock", "cpu-clock"];
const CYCLES: &[&str] = &["cycles"];
const INSTRUCTIONS: &[&str] = &["instructions"];

/// Instructions per cycle up to which the core mostly waits.
pub(super) const STALLED: f64 = 1.0;
/// Instructions per cycle from which on it is busy.
pub(super) const BUSY: f64 = 2.0;

/// No CPU decodes as many instructions in a cycle.
const MOST_PER_CYCLE: Option<f64> = Some(16.0);

const GREGG: &str =
    "B. Gregg, \"CPU Utilization is Wrong\" (2017), for 1; 2 is half of what four-wide cores retire";
const YASIN: &str = "threshold of the top-down method (A. Yasin, ISPASS 2014) as pmu-tools has it";
const LATENCY: &str = "10 misses of 200 cycles each are 2000 cycles for 1000 instructions, more than overlap hides; 1 is a tenth of that";
const MISPREDICTION: &str = "a misprediction costs 15 to 20 cycles (A. Fog, \"The microarchitecture of Intel, AMD and VIA CPUs\"): \
     10 are 150 cycles or more for 1000 instructions";
const SECOND_LEVEL: &str = "the second-level cache answers in about 14 cycles (same source as for branches): 50 are 700 cycles, partly hidden";
const TRANSLATION: &str = "a page walk costs 20 cycles and more, of which some overlap";
const FAULT: &str = "a fault that needs no disk costs 0.5 µs or more: 400,000 are a fifth of a second";
const NONE: &str = "";

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "ipc",
        title: "IPC",
        unit: Unit::PerCycle,
        numerator: "instructions",
        denominators: CYCLES,
        ceiling: MOST_PER_CYCLE,
        marks: Some(Marks { good: BUSY, bad: STALLED }),
        explanation: "Instructions retired per cycle. Low: the core waits, for memory, for branches or for results. High: it works, and less \
                      work is what makes it faster.",
        source: GREGG,
    },
    per_thousand(
        "llc-mpki",
        "LLC-MPKI",
        "LLC-load-misses",
        (1.0, 10.0),
        LATENCY,
        "Loads that missed the last-level cache and went to memory. Remedies: smaller or denser data, access in order, blocking.",
    ),
    share(
        "llc-miss-ratio",
        "LLC-miss",
        "LLC-load-misses",
        &["LLC-loads"],
        None,
        NONE,
        "Part of the loads that reached the last-level cache and missed it. A large part of few loads is harmless: read it with llc-mpki.",
    ),
    per_thousand(
        "l1d-mpki",
        "L1d-MPKI",
        "L1-dcache-load-misses",
        (10.0, 50.0),
        SECOND_LEVEL,
        "Loads that missed the first-level data cache. Many with few last-level misses: the data fits the cache behind it.",
    ),
    share(
        "l1d-miss-ratio",
        "L1d-miss",
        "L1-dcache-load-misses",
        &["L1-dcache-loads"],
        None,
        NONE,
        "Part of all loads that missed the first-level data cache.",
    ),
    per_thousand(
        "cache-mpki",
        "cache-MPKI",
        "cache-misses",
        (1.0, 10.0),
        LATENCY,
        "Misses of the cache that the CPU's maker chose for perf's generic event: mostly the last level, loads and stores.",
    ),
    share(
        "cache-miss-ratio",
        "cache-miss",
        "cache-misses",
        &["cache-references"],
        None,
        NONE,
        "Part of the references to the cache of perf's generic event that missed it. Read it with cache-mpki.",
    ),
    per_thousand(
        "branch-mpki",
        "branch-MPKI",
        "branch-misses",
        (1.0, 10.0),
        MISPREDICTION,
        "Mispredicted branches. Remedies: sort or group the data, conditional moves, tables, fewer branches in the inner loop.",
    ),
    share(
        "branch-miss-ratio",
        "branch-miss",
        "branch-misses",
        &["branches"],
        Some(Marks { good: 0.01, bad: 0.05 }),
        "every fifth instruction or so is a branch: 5 % are 10 per 1000 instructions (see branch-mpki)",
        "Part of all branches that were mispredicted.",
    ),
    per_thousand(
        "dtlb-mpki",
        "dTLB-MPKI",
        "dTLB-load-misses",
        (1.0, 10.0),
        TRANSLATION,
        "Loads whose page was not in the first-level translation buffer. Remedies: huge pages, data that lies close together.",
    ),
    per_thousand(
        "l1i-mpki",
        "L1i-MPKI",
        "L1-icache-load-misses",
        (10.0, 50.0),
        SECOND_LEVEL,
        "Fetches of instructions that missed the first-level cache. Remedies: less inlining and fewer copies of generic code, profile-guided layout.",
    ),
    per_thousand(
        "itlb-mpki",
        "iTLB-MPKI",
        "iTLB-load-misses",
        (1.0, 10.0),
        TRANSLATION,
        "Fetches of instructions whose page was not in the first-level translation buffer. Remedies: code in huge pages, profile-guided layout.",
    ),
    share(
        "frontend-stalls",
        "fe-stall",
        "stalled-cycles-frontend",
        CYCLES,
        Some(Marks { good: 0.05, bad: 0.15 }),
        YASIN,
        "Cycles in which the front end delivered nothing to execute: instructions not fetched or decoded in time.",
    ),
    share(
        "backend-stalls",
        "be-stall",
        "stalled-cycles-backend",
        CYCLES,
        Some(Marks { good: 0.1, bad: 0.2 }),
        YASIN,
        "Cycles in which the back end took nothing: it waited for data or for units that execute.",
    ),
    Metric {
        name: "clock-speed",
        title: "GHz",
        unit: Unit::Gigahertz,
        numerator: "cycles",
        denominators: CLOCKS,
        ceiling: None,
        marks: None,
        explanation: "Cycles per nanosecond of CPU time: the clock rate in force. Functions far apart in it ran at different frequencies, and their \
                      seconds do not compare.",
        source: NONE,
    },
    per_second(
        "faults-per-second",
        "faults/s",
        "page-faults",
        Some(Marks { good: 4e3, bad: 4e5 }),
        FAULT,
        "Page faults per second of CPU time. Many: memory is mapped, touched once and given back. Remedies: reuse buffers, huge pages, populate at once.",
    ),
    per_second(
        "major-faults-per-second",
        "majfaults/s",
        "major-faults",
        None,
        NONE,
        "Page faults that had to read from a disk, per second of CPU time.",
    ),
    per_second(
        "switches-per-second",
        "switches/s",
        "context-switches",
        None,
        NONE,
        "Context switches per second of CPU time: how often the thread gave the CPU away here, to wait for locks, for data, or for its turn.",
    ),
    per_second(
        "migrations-per-second",
        "migrations/s",
        "cpu-migrations",
        None,
        NONE,
        "Moves to another CPU, whose caches are cold, per second of CPU time.",
    ),
];

const fn per_thousand(
    name: &'static str,
    title: &'static str,
    numerator: &'static str,
    (good, bad): (f64, f64),
    source: &'static str,
    explanation: &'static str,
) -> Metric {
    Metric {
        name,
        title,
        unit: Unit::PerThousandInstructions,
        numerator,
        denominators: INSTRUCTIONS,
        ceiling: None,
        marks: Some(Marks { good, bad }),
        explanation,
        source,
    }
}

const fn share(
    name: &'static str,
    title: &'static str,
    numerator: &'static str,
    denominators: &'static [&'static str],
    marks: Option<Marks>,
    source: &'static str,
    explanation: &'static str,
) -> Metric {
    let (unit, ceiling) = (Unit::Share, Some(1.0));
    Metric { name, title, unit, numerator, denominators, ceiling, marks, explanation, source }
}

const fn per_second(
    name: &'static str,
    title: &'static str,
    numerator: &'static str,
    marks: Option<Marks>,
    source: &'static str,
    explanation: &'static str,
) -> Metric {
    let (unit, denominators) = (Unit::PerSecond, CLOCKS);
    Metric { name, title, unit, numerator, denominators, ceiling: None, marks, explanation, source }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::events::EventSpec;

    #[test]
    fn every_event_goes_by_the_name_that_perf_prints() {
        for metric in METRICS {
            for event in metric.denominators.iter().chain([&metric.numerator]) {
                let spec: EventSpec = event.parse().unwrap();
                assert_eq!(spec.to_string(), *event, "{}", metric.name);
            }
        }
    }

    #[test]
    fn names_and_titles_differ_and_are_well_formed() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let titles: BTreeSet<&str> = METRICS.iter().map(|metric| metric.title).collect();
        assert_eq!((names.len(), titles.len()), (METRICS.len(), METRICS.len()));
        for metric in METRICS {
            assert!(
                metric
                    .name
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '-' || letter.is_ascii_digit())
            );
            assert!(!metric.title.contains(char::is_whitespace), "columns are cut at white space");
            assert_eq!(metric.marks.is_some(), !metric.source.is_empty(), "{}", metric.name);
        }
    }
}
