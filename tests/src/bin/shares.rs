//! Three functions with about 50, 30 and 20 % of the CPU time in visits of 1 to 20 ms, and the exact share of each.
//!
//! `shares --seconds N`: prints at its end, a line each, the function and the nanoseconds of CPU time it took, then `all` and
//! those of the whole thread.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bpfprof_tests::cpu_time::{mix, thread_cpu_time};

/// Rounds of `mix` that take a few microseconds.
const STEP: u32 = 5_000;

struct Work {
    name: &'static str,
    /// Takes a number of steps.
    function: fn(u64),
    share: f64,
}

fn main() -> Result<()> {
    let end = Instant::now() + parse()?;
    let step = time_of_step();
    let work = [
        Work { name: "work_one", function: work_one, share: 0.5 },
        Work { name: "work_two", function: work_two, share: 0.3 },
        Work { name: "work_three", function: work_three, share: 0.2 },
    ];
    let mut taken = [Duration::ZERO; 3];
    let mut random = 0x1234_5678_9abc_def1_u64;
    while Instant::now() < end {
        for (Work { function, share, .. }, taken) in work.iter().zip(&mut taken) {
            random = xorshift(random);
            // Lengths from a half to one and a half of the mean, which is the share of 24 ms: 2.4 to 18 ms.
            let length = share * 0.024 * (0.5 + (random % 1000) as f64 / 1000.0);
            let before = thread_cpu_time();
            function((length / step) as u64);
            *taken += thread_cpu_time() - before;
        }
    }
    for (Work { name, .. }, taken) in work.iter().zip(taken) {
        println!("{name} {}", taken.as_nanos());
    }
    println!("all {}", thread_cpu_time().as_nanos());
    Ok(())
}

#[inline(never)]
fn work_one(steps: u64) {
    repeat::<0x0123_4567>(steps);
}

#[inline(never)]
fn work_two(steps: u64) {
    repeat::<0x1234_5679>(steps);
}

#[inline(never)]
fn work_three(steps: u64) {
    repeat::<0x2345_678b>(steps);
}

#[inline(always)]
fn repeat<const NUMBER: u64>(steps: u64) {
    let mut value = NUMBER;
    for _ in 0..steps {
        value = mix::<NUMBER>(value, STEP);
    }
    black_box(value);
}

/// Seconds of CPU time that a step takes: the best of several tries.
fn time_of_step() -> f64 {
    let tries = (0..5).map(|_| {
        let before = thread_cpu_time();
        // None of the three: their time is told in full.
        repeat::<0x3456_789d>(100);
        (thread_cpu_time() - before).as_secs_f64() / 100.0
    });
    tries.fold(f64::INFINITY, f64::min).max(1e-9)
}

fn xorshift(mut value: u64) -> u64 {
    value ^= value << 13;
    value ^= value >> 7;
    value ^ (value << 17)
}

fn parse() -> Result<Duration> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ["--seconds", seconds] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        bail!("shares --seconds N");
    };
    Ok(Duration::try_from_secs_f64(seconds.parse()?)?)
}
