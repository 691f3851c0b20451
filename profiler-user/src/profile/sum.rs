//! Adding samples up so that intervals can be told of the sum.

use std::ops::AddAssign;

use super::statistics::{Estimate, Stream, share};
use crate::kernel::Amount;

/// A number of samples, their weight, and how unequal the weights were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Samples.
    pub samples: u64,
    /// Their weight in the event's unit.
    pub weight: u64,
    /// Sum of the squared weights of single samples.
    squares: f64,
}

impl Sum {
    /// Number of equally weighted samples that tell as much: (Σw)² ÷ Σw² (Kish 1965).
    #[must_use]
    pub fn effective_samples(&self) -> f64 {
        let weight = self.weight as f64;
        if self.squares > 0.0 { weight * weight / self.squares } else { 0.0 }
    }

    /// Its share in `whole`, of which it is a part, with the sampling interval; `None` without weight.
    #[must_use]
    pub fn share_of(&self, whole: &Self) -> Option<Estimate> {
        share(self.stream(whole), whole.without(self).stream(whole))
    }

    /// As the samples of a stream, of which `whole` are all.
    pub(super) fn stream(&self, whole: &Self) -> Stream {
        Stream {
            weight: self.weight as f64,
            samples: self.effective_samples(),
            period: if whole.samples > 0 { whole.weight as f64 / whole.samples as f64 } else { 0.0 },
        }
    }

    /// What is left without a part of it.
    fn without(&self, part: &Self) -> Self {
        let samples = self.samples.saturating_sub(part.samples);
        let weight = self.weight.saturating_sub(part.weight);
        // The squares are rounded, and those of light samples are lost among those of heavy ones: as many samples as are left, of which
        // one may have all the weight, bound them.
        let most = weight as f64 * weight as f64;
        let squares =
            if samples == 0 { 0.0 } else { (self.squares - part.squares).clamp(most / samples as f64, most) };
        Self { samples, weight, squares }
    }
}

impl AddAssign<Amount> for Sum {
    /// Within an amount the weights count as equal.
    fn add_assign(&mut self, amount: Amount) {
        self.samples += amount.samples;
        self.weight += amount.weight;
        if amount.samples > 0 {
            let weight = amount.weight as f64;
            self.squares += weight * weight / amount.samples as f64;
        }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight += other.weight;
        self.squares += other.squares;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_weights_count_for_fewer_samples() {
        let sum = |amounts: &[(u64, u64)]| {
            let mut sum = Sum::default();
            amounts.iter().for_each(|&(samples, weight)| sum += Amount { samples, weight });
            sum.effective_samples()
        };
        assert!((sum(&[(10, 10), (20, 20)]) - 30.0).abs() < 1e-9);
        assert!((sum(&[(1, 1), (1, 3)]) - 1.6).abs() < 1e-9);
        assert!(sum(&[]).abs() < 1e-9);
    }

    #[test]
    fn a_share_is_told_of_all_and_of_nothing() {
        let mut whole = Sum::default();
        assert_eq!(whole.share_of(&whole), None);
        whole += Amount { samples: 20, weight: 140 };
        let all = whole.share_of(&whole).unwrap();
        assert!(all.value == 1.0 && all.high == 1.0 && (all.low - 0.8389).abs() < 1e-4, "{all:?}");
        let none = Sum::default().share_of(&whole).unwrap();
        assert!(none.value == 0.0 && none.low == 0.0 && (none.high - 0.1611).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn light_samples_are_not_lost_beside_heavy_ones() {
        let mut part = Sum::default();
        part += Amount { samples: 10_000, weight: 30_000_000_000 };
        let mut whole = part;
        whole += Amount { samples: 2, weight: 2 };
        let share = part.share_of(&whole).unwrap();
        assert!(share.low > 0.999 && share.high > 0.999, "{share:?}");
    }
}
