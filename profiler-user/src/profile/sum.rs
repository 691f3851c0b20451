//! Adding samples up so that intervals can be told of the sum.

use std::ops::AddAssign;

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
}
