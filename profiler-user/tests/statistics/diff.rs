//! Two runs of one program differ by chance alone, and are marked as seldom as promised.

use bpfprof::profile::statistics::{Repeat, difference, holm, repeat};

use crate::percent;
use crate::program::{Program, SLICE};
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

/// Forty functions of independent shares: after the correction nothing at all is marked in 94 % of the pairs or more.
#[test]
fn many_functions() {
    let mut random = Random::new(0x0040_f00d);
    let program = Program { visit: 0.02, share: 0.3 };
    let pairs = 250;
    let mut functions = || -> Vec<Repeat> {
        std::iter::repeat_with(|| repeat(&program.run(50, &mut random).slices))
            .filter_map(Result::ok)
            .take(40)
            .collect()
    };
    let clean = (0..pairs)
        .filter(|_| {
            let p: Vec<f64> = functions().iter().zip(&functions()).map(|(a, b)| difference(a, b).p).collect();
            holm(&p).iter().all(|&p| p >= 0.05)
        })
        .count();
    let clean = percent(clean, pairs);
    println!("| 40 functions, corrected | 10 s | nothing marked in {clean:.1} % of pairs |");
    // 250 pairs at 95 % have a standard error of 1.4 %.
    assert!(clean >= 90.5, "{clean}");
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
