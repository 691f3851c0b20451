//! The repeat interval holds what long runs give.

use bpfprof::profile::statistics::{Slice, repeat, share};

use crate::percent;
use crate::program::{Program, SLICE};
use crate::random::Random;

/// What many runs of one program came to, in per cent.
struct Coverage {
    repeat: f64,
    sampling: f64,
    too_short: f64,
}

fn coverage(program: Program, seconds: f64, replicates: usize, random: &mut Random) -> Coverage {
    let (mut said, mut held, mut held_by_sampling) = (0, 0, 0);
    let holds = |low: f64, high: f64| usize::from(low <= program.share && program.share <= high);
    for _ in 0..replicates {
        let run = program.run((seconds / SLICE).round() as usize, random);
        let (part, rest) = run.streams();
        held_by_sampling += share(part, rest).map_or(0, |it| holds(it.low, it.high));
        if let Ok(run) = repeat(&run.slices) {
            said += 1;
            held += holds(run.low, run.high);
        }
    }
    Coverage {
        repeat: percent(held, said),
        sampling: percent(held_by_sampling, replicates),
        too_short: percent(replicates - said, replicates),
    }
}

fn check(seconds: f64, share: f64, visit: f64, replicates: usize, least: f64) {
    let mut random = Random::new(0x00c0_ffee ^ visit.to_bits());
    let found = coverage(Program { visit, share }, seconds, replicates, &mut random);
    println!(
        "| {seconds} s | {share} | {} ms | {:.1} % | {:.1} % | {:.1} % |",
        visit * 1e3,
        found.repeat,
        found.too_short,
        found.sampling
    );
    assert!((least..=97.0).contains(&found.repeat), "{seconds} s, visits of {visit} s: {}", found.repeat);
}

/// Where the run holds many visits, the model holds.
#[test]
fn many_visits() {
    check(10.0, 0.5, 0.0005, 1000, 93.0);
    check(10.0, 0.5, 0.002, 2000, 93.0);
    check(10.0, 0.5, 0.01, 10_000, 93.0);
    check(10.0, 0.5, 0.05, 10_000, 93.0);
    check(60.0, 0.5, 0.2, 10_000, 93.0);
    check(10.0, 0.1, 0.01, 10_000, 93.0);
}

/// With few visits nothing in the run tells how rare or how long they can be: the interval is too narrow.
#[test]
fn few_visits() {
    check(10.0, 0.5, 0.2, 10_000, 90.0);
    check(10.0, 0.1, 0.05, 10_000, 88.0);
    check(10.0, 0.1, 0.2, 10_000, 78.0);
    check(60.0, 0.1, 0.2, 5000, 90.0);
}

/// Misses against instructions where both vary from slice to slice, the instructions by a factor of three.
#[test]
fn a_ratio_of_two_sums_that_vary() {
    let mut random = Random::new(0x00ad_d1ce);
    let (mut said, mut held) = (0, 0);
    for _ in 0..10_000 {
        let slices: Vec<Slice> = (0..50)
            .map(|_| {
                let busy = 0.5 + random.uniform();
                let base = 0.1 + random.poisson(8.0 * busy) as f64;
                Slice { amount: random.poisson(0.5 * base) as f64, base }
            })
            .collect();
        if let Ok(run) = repeat(&slices) {
            said += 1;
            held += usize::from(run.low <= 0.5 && 0.5 <= run.high);
        }
    }
    let held = percent(held, said);
    println!("ratio of two sums over 50 slices: held in {held:.1} %");
    assert!((93.0..=97.0).contains(&held) && said > 9800, "{held} of {said}");
}
