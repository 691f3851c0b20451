//! The sampling interval holds the truth of the run that was sampled.

use bpfprof::profile::statistics::{Estimate, Stream, ratio, share};

use crate::percent;
use crate::program::{Program, samples_of_one};
use crate::random::Random;

const REPLICATES: usize = 10_000;

fn holds(estimate: Estimate, truth: f64) -> bool {
    estimate.low <= truth && truth <= estimate.high
}

#[test]
fn shares_of_independent_samples() {
    let mut random = Random::new(0x1234_5678_9abc_def0);
    for truth in [0.02, 0.3, 0.5] {
        let held = (0..REPLICATES)
            .filter(|_| {
                let hits = (0..400).filter(|_| random.uniform() < truth).count() as u64;
                share(stream(hits), stream(400 - hits)).is_some_and(|estimate| holds(estimate, truth))
            })
            .count();
        let held = percent(held, REPLICATES);
        println!("share {truth} of 400 independent samples: held in {held:.1} %");
        assert!((93.0..=97.0).contains(&held), "share {truth}: {held}");
    }
}

/// With visits of a tenth of the interval samples are as good as independent.
#[test]
fn shares_of_a_program_of_short_visits() {
    let held = held_in_this_run(1e-4, 0.5, 2);
    assert!((93.0..=97.0).contains(&held), "{held}");
}

/// Where visits are longer than the interval, the clock measures them: never worse than independent samples.
#[test]
fn shares_of_a_program_of_long_visits() {
    for share_of_time in [0.5, 0.1] {
        for visit in [2e-3, 1e-2, 5e-2, 0.2] {
            let held = held_in_this_run(visit, share_of_time, 5);
            assert!(held >= 95.0, "visits of {visit} s: {held}");
        }
    }
}

fn held_in_this_run(visit: f64, share_of_time: f64, slices: usize) -> f64 {
    let mut random = Random::new(0x0bad_cafe);
    let program = Program { visit, share: share_of_time };
    let held = (0..REPLICATES)
        .filter(|_| {
            let run = program.run(slices, &mut random);
            let (part, rest) = run.streams();
            share(part, rest).is_some_and(|estimate| holds(estimate, run.truth))
        })
        .count();
    let held = percent(held, REPLICATES);
    println!("share {share_of_time}, visits of {} ms: held in {held:.1} %", visit * 1e3);
    held
}

/// The period differs between two functions, as where the kernel follows the rate of an event through long phases.
#[test]
fn shares_where_samples_weigh_differently() {
    let mut random = Random::new(0x7ea5_e1f5);
    for (part, rest, period) in
        [(20.0, 1800.0, 10.0), (200.0, 200.0, 10.0), (1800.0, 20.0, 10.0), (100.0, 900.0, 0.1)]
    {
        let truth = part * period / (part * period + rest);
        let held = (0..REPLICATES)
            .filter(|_| {
                let part = stream(random.poisson(part));
                let part = Stream { weight: part.weight * period, period, ..part };
                share(part, stream(random.poisson(rest))).is_some_and(|estimate| holds(estimate, truth))
            })
            .count();
        let held = percent(held, REPLICATES);
        println!(
            "share {truth:.3} of {part} samples of weight {period} and {rest} of weight 1: held in {held:.1} %"
        );
        assert!((93.0..=97.0).contains(&held), "{part} of {period}, {rest}: {held}");
    }
}

#[test]
fn ratios_of_independent_streams() {
    let mut random = Random::new(0xfeed_5eed);
    for (above, below) in [(800.0, 800.0), (300.0, 30.0), (30.0, 300.0), (25.0, 25.0), (40.0, 1000.0)] {
        let mut shown = 0;
        let held = (0..REPLICATES)
            .filter(|_| {
                let estimate = ratio(stream(random.poisson(above)), stream(random.poisson(below)));
                shown += usize::from(estimate.is_some());
                estimate.is_some_and(|estimate| holds(estimate, above / below))
            })
            .count();
        let held = percent(held, shown);
        println!("ratio of {above} to {below} independent samples: held in {held:.1} %");
        assert!((93.0..=97.0).contains(&held), "{above} to {below}: {held}");
    }
}

/// Below the fewest samples only the upper end is told; it must hold all the more.
#[test]
fn ratios_of_few_samples_are_bounded_from_above() {
    let mut random = Random::new(0x5eed_f00d);
    for above in [0.5, 2.0, 5.0, 12.0] {
        let held = (0..REPLICATES)
            .filter(|_| {
                let estimate = ratio(stream(random.poisson(above)), stream(random.poisson(200.0)));
                estimate.is_some_and(|estimate| holds(estimate, above / 200.0))
            })
            .count();
        let held = percent(held, REPLICATES);
        println!("ratio of {above} to 200 independent samples: held in {held:.1} %");
        assert!(held >= 95.0, "{above}: {held}");
    }
}

fn stream(samples: u64) -> Stream {
    samples_of_one(samples as f64)
}
