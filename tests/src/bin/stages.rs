//! Four functions in turn, each doing a fixed amount of work a round, so that one can be made slower and the others stay as they are.
//!
//! `stages --seconds N [--slow NAME FACTOR]`: for that much CPU time, with `stage_NAME` (one, two, three or four) doing FACTOR times its work.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bpfprof_tests::cpu_time::thread_cpu_time;

/// Turns of a loop that take about 10 µs.
const STEP: u64 = 10_000;

/// A function whose time is all its own: nothing in it is a call that could be inlined.
macro_rules! stage {
    ($name:ident, $number:literal) => {
        #[inline(never)]
        fn $name(turns: u64) -> u64 {
            let mut value: u64 = $number;
            let mut turn = 0;
            while turn < turns {
                value ^= value << 13;
                value ^= value >> 7;
                value ^= value << 17;
                turn += 1;
            }
            value
        }
    };
}

stage!(stage_one, 0x0123_4567);
stage!(stage_two, 0x1234_5679);
stage!(stage_three, 0x2345_678b);
stage!(stage_four, 0x3456_789d);

type Stage = fn(u64) -> u64;

fn main() -> Result<()> {
    let (time, slow, factor) = parse()?;
    // Shares of 40, 30, 20 and 10 %.
    let mut stages: [(&str, Stage, u64); 4] = [
        ("one", stage_one, 4 * STEP),
        ("two", stage_two, 3 * STEP),
        ("three", stage_three, 2 * STEP),
        ("four", stage_four, STEP),
    ];
    for (name, _, turns) in &mut stages {
        if *name == slow {
            *turns = (*turns as f64 * factor) as u64;
        }
    }
    while thread_cpu_time() < time {
        for (_, stage, turns) in stages {
            black_box(stage(black_box(turns)));
        }
    }
    Ok(())
}

fn parse() -> Result<(Duration, String, f64)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--seconds", seconds] => Ok((Duration::try_from_secs_f64(seconds.parse()?)?, String::new(), 1.0)),
        ["--seconds", seconds, "--slow", name, factor] => {
            let factor = factor.parse().context("FACTOR is no number")?;
            Ok((Duration::try_from_secs_f64(seconds.parse()?)?, name.to_owned(), factor))
        }
        _ => bail!("stages --seconds N [--slow NAME FACTOR]"),
    }
}
