//! Whether a figure stays where it was.

/// Means of the first minutes after the warm-up and of the last ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steadiness {
    pub first: f64,
    pub last: f64,
}

impl Steadiness {
    /// Compares a quarter of the minutes, after a fifth that is the warm-up, with a quarter at the end; `None` for fewer than three minutes, which
    /// tell nothing.
    pub(super) fn of(by_minute: &[f64]) -> Option<Self> {
        let settled = by_minute.get((by_minute.len() / 5).max(1)..)?;
        if settled.len() < 2 {
            return None;
        }
        let part = (settled.len() / 4).max(1);
        Some(Self { first: mean(&settled[..part]), last: mean(&settled[settled.len() - part..]) })
    }

    /// Whether the last minutes exceed the first by no more than this share of them and this amount.
    pub(super) fn is_flat(self, share: f64, amount: f64) -> bool {
        self.last <= self.first * (1.0 + share) + amount
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests {
    use super::Steadiness;

    #[test]
    fn the_warm_up_does_not_count() {
        let by_minute = [10.0, 50.0, 80.0, 82.0, 81.0, 81.0, 83.0, 80.0, 84.0, 86.0];
        assert_eq!(Steadiness::of(&by_minute), Some(Steadiness { first: 81.0, last: 85.0 }));
        assert_eq!(Steadiness::of(&[1.0, 2.0, 4.0]), Some(Steadiness { first: 2.0, last: 4.0 }));
        for too_short in [&[][..], &[1.0], &[1.0, 2.0]] {
            assert_eq!(Steadiness::of(too_short), None);
        }
    }

    #[test]
    fn growth_beyond_the_tolerance_is_seen() {
        let steadiness = Steadiness { first: 100.0, last: 125.0 };
        assert!(steadiness.is_flat(0.2, 5.0) && !steadiness.is_flat(0.2, 4.0));
        assert!(Steadiness { first: 100.0, last: 50.0 }.is_flat(0.0, 0.0));
    }
}
