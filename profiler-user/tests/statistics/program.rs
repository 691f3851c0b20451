//! A simulated program: two functions in turn, for random times, sampled by a clock.

use bpfprof::profile::statistics::{Slice, Stream};

use crate::random::Random;

/// Samples a second, bpfprof's default.
pub(crate) const RATE: f64 = 997.0;

/// Seconds between two drains.
pub(crate) const SLICE: f64 = 0.2;

/// Two functions that call each other's turn.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// Mean length of a visit to the first function in seconds; lengths are exponentially distributed.
    pub(crate) visit: f64,
    /// Share of the time that the first function takes in the long run.
    pub(crate) share: f64,
}

/// One run of it.
pub(crate) struct Run {
    /// Share of the time that the first function took in this run.
    pub(crate) truth: f64,
    /// For each slice the samples in the first function, and all.
    pub(crate) slices: Vec<Slice>,
}

/// So many samples, each of the weight 1.
pub(crate) fn samples_of_one(samples: f64) -> Stream {
    Stream { weight: samples, samples, period: 1.0 }
}

impl Run {
    /// Samples in the first function, and in the second.
    pub(crate) fn streams(&self) -> (Stream, Stream) {
        let sum = |samples: fn(&Slice) -> f64| samples_of_one(self.slices.iter().map(samples).sum());
        (sum(|slice| slice.amount), sum(|slice| slice.base - slice.amount))
    }
}

impl Program {
    /// Runs it for some slices; the clock begins at a random phase.
    pub(crate) fn run(self, slices: usize, random: &mut Random) -> Run {
        let means = [self.visit, self.visit * (1.0 - self.share) / self.share];
        let phase = random.uniform();
        let samples_before = |time: f64| (time * RATE - phase).ceil();
        let end = slices as f64 * SLICE;
        let mut run = Run { truth: 0.0, slices: Vec::with_capacity(slices) };
        let mut function = usize::from(random.uniform() >= self.share);
        let (mut now, mut counted) = (0.0, samples_before(0.0));
        let (mut border, mut slice) = (SLICE, Slice::default());
        let mut leaves = random.exponential(means[function]);
        while run.slices.len() < slices {
            let until = leaves.min(border);
            let reached = samples_before(until);
            let first = if function == 0 { 1.0 } else { 0.0 };
            slice.amount += first * (reached - counted);
            slice.base += reached - counted;
            run.truth += first * (until - now) / end;
            (now, counted) = (until, reached);
            if leaves <= border {
                function = 1 - function;
                leaves += random.exponential(means[function]);
            } else {
                run.slices.push(std::mem::take(&mut slice));
                border = (run.slices.len() + 1) as f64 * SLICE;
            }
        }
        run
    }
}
