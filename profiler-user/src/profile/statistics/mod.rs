//! Intervals: how far a figure from samples can be from the truth.
//!
//! Two questions, never mixed. *Sampling*: how well do the samples tell the truth of this run ([`share`], [`ratio`])? *Repeat*: what would
//! another run of the same program give ([`repeat`], [`difference`])?

mod difference;
mod ratio;
mod repeat;
mod share;

pub use difference::{Difference, difference, holm};
pub use ratio::{FEWEST_SAMPLES, Stream, ratio};
pub use repeat::{FEWEST_BLOCKS, Repeat, Slice, TooShort, repeat};
pub use share::share;

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Best guess.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

impl Estimate {
    /// The same in a unit of which `factor` make one of the old; `factor` is positive.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The normal quantile for two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;
