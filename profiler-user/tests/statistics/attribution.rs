//! What the two attributions make of two functions in turn, one of IPC 3.0 and one of 0.3.
//!
//! Time is counted in sampling intervals, cycles as well: the clock rate is constant.

use bpfprof::profile::metrics::Metric;
use bpfprof::profile::statistics::{Estimate, Stream};

use crate::percent;
use crate::random::Random;

const IPC: [f64; 2] = [3.0, 0.3];

/// Instructions between two overflows: as many samples as of cycles.
const PERIOD: f64 = (IPC[0] + IPC[1]) / 2.0;

/// What one run brought for a function.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Overflows of cycles, of which one comes in each interval.
    cycles: f64,
    /// Overflows of instructions.
    instructions: f64,
    /// Cycles since the sample before, read at each sample of cycles that hit the function.
    cycles_read: f64,
    /// Instructions likewise.
    instructions_read: f64,
}

impl Sums {
    fn delta(&self) -> f64 {
        self.instructions_read / self.cycles_read
    }

    fn overflow(&self) -> Option<Estimate> {
        Metric::by_name("ipc").ok()?.estimate(&|event: &str| {
            let (samples, period) = match event {
                "cycles" => (self.cycles, 1.0),
                "instructions" => (self.instructions, PERIOD),
                _ => return None,
            };
            Some(Stream { weight: samples * period, samples, period })
        })
    }
}

/// Runs for some intervals; visits are exponentially distributed around `visit` intervals.
fn run(visit: f64, intervals: f64, random: &mut Random) -> [Sums; 2] {
    let mut sums = [Sums::default(); 2];
    let mut function = 0;
    let (mut now, mut retired) = (0.0, 0.0);
    let (mut next_cycles, mut next_instructions) = (random.uniform(), PERIOD * random.uniform());
    let (mut read_at, mut read) = (0.0, 0.0);
    while now < intervals {
        let leaves = now + random.exponential(visit);
        let sum = &mut sums[function];
        while next_cycles < leaves {
            let retired_there = retired + IPC[function] * (next_cycles - now);
            sum.cycles += 1.0;
            sum.cycles_read += next_cycles - read_at;
            sum.instructions_read += retired_there - read;
            (read_at, read) = (next_cycles, retired_there);
            next_cycles += 1.0;
        }
        retired += IPC[function] * (leaves - now);
        while next_instructions < retired {
            sum.instructions += 1.0;
            next_instructions += PERIOD;
        }
        now = leaves;
        function = 1 - function;
    }
    sums
}

/// What `delta` comes to in the long run. The function at a sample was also on the CPU for this share of the interval before:
/// ½ + ½·(1 − e⁻ˣ)/x with x = 2 ÷ visit, the average of the probability that an alternating process is where it ends.
fn expected_delta(visit: f64) -> [f64; 2] {
    let x = 2.0 / visit;
    let own = 0.5 + 0.5 * (1.0 - (-x).exp()) / x;
    [own * IPC[0] + (1.0 - own) * IPC[1], own * IPC[1] + (1.0 - own) * IPC[0]]
}

#[test]
fn delta_takes_the_neighbours_ratio_and_overflow_does_not() {
    let mut random = Random::new(0x0dd_ba11);
    for visit in [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 20.0] {
        let sums = run(visit, 200_000.0, &mut random);
        let delta = sums.map(|sums| sums.delta());
        let overflow = sums.map(|sums| sums.overflow().unwrap().value);
        println!("| {visit} | {:.2} | {:.2} | {:.2} | {:.2} |", delta[0], delta[1], overflow[0], overflow[1]);
        for function in [0, 1] {
            let expected = expected_delta(visit)[function];
            assert!((delta[function] - expected).abs() < 0.02, "{visit}: {delta:?}, not {expected}");
            assert!((overflow[function] / IPC[function] - 1.0).abs() < 0.02, "{visit}: {overflow:?}");
        }
    }
}

#[test]
fn the_bias_is_as_documented() {
    for (visit, first, second) in [(0.01, 1.66, 1.64), (1.0, 2.23, 1.07), (20.0, 2.93, 0.37)] {
        let expected = expected_delta(visit);
        assert!((expected[0] - first).abs() < 0.006 && (expected[1] - second).abs() < 0.006, "{expected:?}");
    }
}

/// The sampling interval of a ratio of overflow streams holds the truth of the run, which here is that of the function.
#[test]
fn the_interval_of_overflow_holds_the_truth() {
    let mut random = Random::new(0xace_0fba5e);
    for (visit, replicates) in [(0.1, 1000), (1.0, 5000), (20.0, 10_000)] {
        for (function, truth) in IPC.into_iter().enumerate() {
            let mut shown = 0;
            let held = (0..replicates)
                .filter(|_| {
                    let estimate = run(visit, 1000.0, &mut random)[function].overflow();
                    shown += usize::from(estimate.is_some());
                    estimate.is_some_and(|it| it.low <= truth && truth <= it.high)
                })
                .count();
            let held = percent(held, shown);
            println!("IPC {truth}, visits of {visit} intervals: held in {held:.1} %");
            assert!(held >= 95.0, "visits of {visit}: {held}");
        }
    }
}
