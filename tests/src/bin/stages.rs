//! Four functions in turn, each doing a fixed amount of work a round, so that one can be made slower and the others stay as they are.
//!
//! `stages --seconds N [--slow NAME FACTOR]`: for that much CPU time, with `stage_NAME` (one, two, three or four) doing FACTOR times its work.
//! `stages --seconds N --calls ONE TWO`: `caller_one` and `caller_two` call `stage_four` so many times a round, beside `stage_one`.

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

/// A function that does nothing but call the last stage.
macro_rules! caller {
    ($name:ident, $number:literal) => {
        #[inline(never)]
        fn $name(times: u64) -> u64 {
            let mut value: u64 = $number;
            for _ in 0..times {
                value ^= black_box(stage_four(black_box(STEP)));
            }
            value
        }
    };
}

caller!(caller_one, 1);
caller!(caller_two, 2);

fn main() -> Result<()> {
    match parse()? {
        (time, Work::Stages { slow, factor }) => run_stages(time, &slow, factor),
        (time, Work::Calls { one, two }) => {
            while thread_cpu_time() < time {
                black_box(stage_one(black_box(4 * STEP)));
                black_box(caller_one(black_box(one)));
                black_box(caller_two(black_box(two)));
            }
        }
    }
    Ok(())
}

fn run_stages(time: Duration, slow: &str, factor: f64) {
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
}

/// What a round does.
enum Work {
    Stages { slow: String, factor: f64 },
    Calls { one: u64, two: u64 },
}

fn parse() -> Result<(Duration, Work)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ["--seconds", seconds, rest @ ..] = &arguments[..] else { bail!("{USAGE}") };
    let work = match rest {
        [] => Work::Stages { slow: String::new(), factor: 1.0 },
        ["--slow", name, factor] => {
            let factor = factor.parse().context("FACTOR is no number")?;
            Work::Stages { slow: (*name).to_owned(), factor }
        }
        ["--calls", one, two] => Work::Calls { one: one.parse()?, two: two.parse()? },
        _ => bail!("{USAGE}"),
    };
    Ok((Duration::try_from_secs_f64(seconds.parse()?)?, work))
}

const USAGE: &str = "stages --seconds N [--slow NAME FACTOR | --calls ONE TWO]";
