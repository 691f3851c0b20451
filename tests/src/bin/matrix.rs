//! Sums a matrix that no cache holds by columns and by rows, and computes at the end of a deep chain of calls: about a third of the time each.
//!
//! `matrix [--seconds N]`: without it, until it is killed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// 64 MiB of numbers.
const ROWS: usize = 4096;
const COLUMNS: usize = 2048;
/// How long one kind of work goes on before the next has its turn.
const TURN: Duration = Duration::from_millis(20);
const DEPTH: u32 = 40;

fn main() -> Result<()> {
    let end = parse()?.map(|time| Instant::now() + time);
    let matrix: Vec<f64> = (0..ROWS * COLUMNS).map(|cell| (cell % 1000) as f64).collect();
    let (mut column, mut row) = (0, 0);
    while end.is_none_or(|end| Instant::now() < end) {
        take_turn(|| {
            column = (column + 1) % COLUMNS;
            black_box(column_sum(&matrix, column));
        });
        take_turn(|| {
            for _ in 0..16 {
                row = (row + 1) % ROWS;
                black_box(row_sum(&matrix, row));
            }
        });
        take_turn(|| {
            black_box(deep_chain(DEPTH));
        });
    }
    Ok(())
}

#[inline(never)]
fn column_sum(matrix: &[f64], column: usize) -> f64 {
    // Plain loops: adaptors of iterators would fill the profile with their own inlined frames.
    let (mut sum, mut cell) = (0.0, column);
    while cell < matrix.len() {
        sum += matrix[cell];
        cell += COLUMNS;
    }
    sum
}

#[inline(never)]
fn row_sum(matrix: &[f64], row: usize) -> f64 {
    let mut sum = 0.0;
    for cell in &matrix[row * COLUMNS..][..COLUMNS] {
        sum += cell;
    }
    sum
}

#[inline(never)]
fn deep_chain(depth: u32) -> u64 {
    // The addition keeps the call from being a jump.
    if depth == 0 { compute() } else { black_box(deep_chain(black_box(depth - 1))) + 1 }
}

#[inline(never)]
fn compute() -> u64 {
    let (mut value, mut round) = (0x9e37_79b9_u64, 0);
    while round < 10_000 {
        value = (value ^ (value << 13)) ^ (value >> 7) ^ round;
        round += 1;
    }
    value
}

fn take_turn(mut work: impl FnMut()) {
    let end = Instant::now() + TURN;
    while Instant::now() < end {
        work();
    }
}

fn parse() -> Result<Option<Duration>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None => Ok(None),
        Some("--seconds") => {
            let seconds = arguments.next().context("--seconds takes a number")?;
            Ok(Some(Duration::try_from_secs_f64(seconds.parse()?)?))
        }
        Some(other) => bail!("unknown argument {other}: matrix [--seconds N]"),
    }
}
