//! Programs that do the same in turns of equal length, sampled by clocks of a fixed and of random periods.

use bpfprof::profile::statistics::share;

use crate::percent;
use crate::program::{RATE, samples_of_one};
use crate::random::Random;

const REPLICATES: usize = 300;

/// Seconds of a run.
const RUN: f64 = 10.0;

/// Share of each turn that the first function takes.
const SHARE: f64 = 0.7;

/// Seconds between two draws of a period, and how far periods may be from the one asked for: as in the product.
const DRAW: f64 = 0.05;
const SPREAD: f64 = 0.1;

/// Turns of a program.
#[derive(Clone, Copy)]
struct Turns {
    /// Their length in mean periods of the clock.
    length: f64,
    /// How much longer they are at the end of the run than at its beginning.
    drift: f64,
}

impl Turns {
    /// The turn that runs at this time of the run, and the part of it that is over.
    fn phase(self, time: f64) -> f64 {
        let first = self.length / RATE;
        // The length grows with time, so turns are passed by the logarithm of it.
        let growth = self.drift / RUN;
        let turns = if growth == 0.0 { time / first } else { (growth * time).ln_1p() / (first * growth) };
        turns.fract()
    }
}

/// What a clock made of many runs.
struct Outcome {
    /// Per cent of the runs in whose interval the truth lay.
    held: f64,
    /// The median error and the largest, in percentage points.
    typical: f64,
    largest: f64,
}

/// Samples runs that begin at random phases. `spread` is that of the periods.
fn sample(turns: Turns, spread: f64, random: &mut Random) -> Outcome {
    let mut errors = Vec::with_capacity(REPLICATES);
    let mut held = 0;
    for _ in 0..REPLICATES {
        let (offset, mut time) = (random.uniform(), random.uniform() / RATE);
        let (mut part, mut all) = (0.0, 0.0);
        let (mut period, mut drawn_until) = (1.0 / RATE, 0.0);
        while time < RUN {
            if time >= drawn_until {
                period = (1.0 - spread + 2.0 * spread * random.uniform()) / RATE;
                drawn_until = time + DRAW;
            }
            // A sample weighs what the clock counted since the last one.
            time += period;
            all += period * RATE;
            part += if (turns.phase(time) + offset).fract() < SHARE { period * RATE } else { 0.0 };
        }
        let estimate = share(samples_of_one(part), samples_of_one(all - part));
        held += usize::from(estimate.is_some_and(|found| found.low <= SHARE && SHARE <= found.high));
        errors.push(100.0 * (part / all - SHARE).abs());
    }
    errors.sort_unstable_by(f64::total_cmp);
    let (typical, largest) = (errors[REPLICATES / 2], errors[REPLICATES - 1]);
    Outcome { held: percent(held, REPLICATES), typical, largest }
}

#[test]
fn turns_of_equal_length() {
    let mut random = Random::new(0x10c5_7e95);
    for drift in [0.0, 0.01] {
        for length in [0.1, 0.5, 0.997, 1.0, 1.03, 2.0, 3.3, 10.0] {
            let turns = Turns { length, drift };
            let [fixed, drawn] = [0.0, SPREAD].map(|spread| sample(turns, spread, &mut random));
            println!(
                "turns of {length} periods, drift {:.0} %: fixed {:.1} % held, off by {:.1}, at most {:.1}; drawn {:.1} % held, off by {:.1}, at most {:.1}",
                drift * 100.0,
                fixed.held,
                fixed.typical,
                fixed.largest,
                drawn.held,
                drawn.typical,
                drawn.largest
            );
            assert!(
                drawn.held >= 55.0 && drawn.typical < 1.0 && drawn.largest < 6.0,
                "turns of {length} periods"
            );
            let is_in_step = drift == 0.0 && (length == 1.0 || (1.0 / length).fract() == 0.0);
            assert!(
                !is_in_step || fixed.held == 0.0,
                "a fixed period must fail for turns of {length} periods"
            );
        }
    }
}
