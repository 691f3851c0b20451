//! Two runs of one program differ by chance alone, and are marked as seldom as promised.

use bpfprof::profile::statistics::{Repeat, Slice, difference, holm, repeat};

use crate::percent;
use crate::program::{Program, RATE, SLICE};
use crate::random::Random;

/// Per cent of the pairs that differ by p below 0.05.
fn marked(program: Program, seconds: f64, pairs: usize, random: &mut Random) -> f64 {
    let mut run = || loop {
        if let Ok(run) = repeat(&program.run((seconds / SLICE).round() as usize, random).slices) {
            return run;
        }
    };
    percent((0..pairs).filter(|_| difference(&run(), &run()).p < 0.05).count(), pairs)
}

fn check(name: &str, program: Program, seconds: f64, pairs: usize, most: f64) {
    let marked = marked(program, seconds, pairs, &mut Random::new(0x00d1_ff00));
    println!("| {name} | {seconds} s | {marked:.1} % |");
    assert!((4.0..=most).contains(&marked), "{name}: {marked}");
}

#[test]
fn a_steady_program() {
    check("steady (visits of 10 ms)", Program { visit: 0.01, share: 0.5 }, 10.0, 5000, 6.0);
}

#[test]
fn a_program_with_phases() {
    let program = Program { visit: 0.2, share: 0.5 };
    check("phases of 0.2 s", program, 60.0, 10_000, 6.0);
    // Twenty-five visits to each function are few.
    check("phases of 0.2 s", program, 10.0, 10_000, 8.5);
}

/// A hundred functions, the n-th of a share like 1 ÷ n: after the correction nothing at all is marked in nearly all pairs.
#[test]
fn many_functions() {
    let mut random = Random::new(0x0040_f00d);
    let (functions, slices, pairs) = (100, 50, 200);
    let all: f64 = (1..=functions).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut run = || -> Vec<Option<Repeat>> {
        let mut counts = |rank| -> Vec<f64> {
            let mean = RATE * SLICE / f64::from(rank) / all;
            (0..slices).map(|_| random.poisson(mean) as f64).collect()
        };
        let counts: Vec<Vec<f64>> = (1..=functions).map(&mut counts).collect();
        let whole = |slice: usize| counts.iter().map(|of_function| of_function[slice]).sum();
        let slices = |amounts: &Vec<f64>| -> Vec<Slice> {
            (0..).zip(amounts).map(|(slice, &amount)| Slice { amount, base: whole(slice) }).collect()
        };
        counts.iter().map(|amounts| repeat(&slices(amounts)).ok()).collect()
    };
    let (mut clean, mut compared, mut marked) = (0, 0, 0);
    for _ in 0..pairs {
        let both = run().into_iter().zip(run());
        let p: Vec<f64> = both.filter_map(|(before, after)| Some(difference(&before?, &after?).p)).collect();
        compared += p.len();
        marked += p.iter().filter(|&&p| p < 0.05).count();
        clean += usize::from(holm(&p).iter().all(|&p| p >= 0.05));
    }
    let (clean, marked) = (percent(clean, pairs), percent(marked, compared));
    println!(
        "{functions} functions, 10 s: {marked:.1} % marked before correction, none after it in {clean:.1} % of pairs"
    );
    // 200 pairs at 95 % have a standard error of 1.5 %.
    assert!(clean >= 90.5 && marked <= 6.0, "{clean}, {marked}");
}

/// A function that became a fifth slower is marked.
#[test]
fn a_real_change_is_found() {
    let mut random = Random::new(0x51);
    let mut run = |share: f64| repeat(&Program { visit: 0.01, share }.run(150, &mut random).slices);
    let found = (0..200)
        .filter(|_| {
            let (Ok(before), Ok(after)) = (run(0.30), run(0.36)) else { return false };
            let difference = difference(&before, &after);
            difference.low > 0.0 && difference.p < 0.05
        })
        .count();
    println!("share 0.30 to 0.36 in 30 s: marked in {:.1} % of pairs", percent(found, 200));
    assert!(found >= 190, "{found} of 200");
}
