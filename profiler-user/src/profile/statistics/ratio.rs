//! The ratio of two events in one place, each sampled by its own overflow.

use super::{Estimate, Z};

/// The samples of one event in one place: a function, a thread, the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Sum of the weights, in the event's unit, scaled where the kernel multiplexed.
    pub weight: f64,
    /// Effective number of samples ([`Sum::effective_samples`](crate::profile::Sum::effective_samples)).
    pub samples: f64,
    /// What a sample of this event weighs on average over the whole run: where a place has no sample, this bounds what it may have had.
    pub period: f64,
}

/// A denominator of fewer samples carries no ratio, and a numerator of fewer no lower end.
///
/// With ten samples against very many the ends of the interval are a factor of 1.85 away, with ten against ten a factor of 2.3.
/// Below that the interval says little more than the order of magnitude, and so would the value in front of it.
pub const FEWEST_SAMPLES: f64 = 10.0;

/// Numerator ÷ denominator with a 95 % interval for the ratio in this run.
///
/// With fewer numerator samples than [`FEWEST_SAMPLES`] only the upper end is told, and the lower is 0. `None` if the denominator has fewer
/// samples, or if a weight is missing.
#[must_use]
pub fn ratio(numerator: Stream, denominator: Stream) -> Option<Estimate> {
    let carries = |stream: Stream| stream.samples >= FEWEST_SAMPLES && stream.weight > 0.0;
    if !carries(denominator) {
        return None;
    }
    let Estimate { value, low, high } = odds(numerator, denominator)?;
    let low = if carries(numerator) { low } else { 0.0 };
    [low, value, high].iter().all(|end| end.is_finite()).then_some(Estimate { value, low, high })
}

/// The weight of one stream against that of the other with a 95 % interval, infinite where the other has no samples.
///
/// Overflows of an event are at worst as irregular as a Poisson process, so Var(ln R) ≈ 1/N₁ + 1/N₂. Given all N₁ + N₂ samples, those of
/// the first are binomial, and Wilson's interval for their share is in odds exp(±2·asinh(½z·√Var)): about ±z·√Var for many
/// samples, and right for few. Where one has none, the limit of the formula is z² of its periods against the other, a little more than the
/// exact 3.7. `None` if both have none, or a weight or period is none.
pub(super) fn odds(stream: Stream, other: Stream) -> Option<Estimate> {
    if !(stream.weight.is_finite() && other.weight.is_finite()) {
        return None;
    }
    let most = |none: Stream| (none.period > 0.0).then_some(Z * Z * none.period);
    match (stream.weight > 0.0, other.weight > 0.0) {
        (true, true) => {
            let value = stream.weight / other.weight;
            let variance = 1.0 / stream.samples + 1.0 / other.samples;
            let factor = (2.0 * (Z / 2.0 * variance.sqrt()).asinh()).exp();
            Some(Estimate { value, low: value / factor, high: value * factor })
        }
        (false, true) => Some(Estimate { value: 0.0, low: 0.0, high: most(stream)? / other.weight }),
        (true, false) => {
            let low = stream.weight / most(other)?;
            Some(Estimate { value: f64::INFINITY, low, high: f64::INFINITY })
        }
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(weight: f64, samples: f64) -> Stream {
        Stream { weight, samples, period: 100.0 }
    }

    fn near(estimate: Option<Estimate>, value: f64, low: f64, high: f64) {
        let estimate = estimate.unwrap();
        for (found, expected) in [(estimate.value, value), (estimate.low, low), (estimate.high, high)] {
            assert!((found - expected).abs() <= 1e-3 * expected.abs(), "{estimate:?}");
        }
    }

    #[test]
    fn many_samples_give_the_normal_interval() {
        // √(1/800 + 1/800) = 0.05; times the normal quantile 0.098, of which e to the power is 1.10296.
        near(ratio(stream(3e6, 800.0), stream(1e6, 800.0)), 3.0, 3.0 / 1.10296, 3.0 * 1.10296);
    }

    #[test]
    fn it_is_wilsons_interval_in_odds() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 15 of 148 is 0.0624 to 0.1605.
        let odds = |share: f64| share / (1.0 - share);
        near(ratio(stream(15.0, 15.0), stream(133.0, 133.0)), 15.0 / 133.0, odds(0.062_387), odds(0.160_488));
    }

    #[test]
    fn a_few_samples_bound_from_above_alone() {
        let few = ratio(stream(900.0, 9.0), stream(1e6, 1000.0)).unwrap();
        assert!(few.value > 0.0 && few.low == 0.0 && few.high > few.value, "{few:?}");
        // At most 3.84 times the period against the denominator, where the exact bound is 3.69.
        near(ratio(stream(0.0, 0.0), stream(1e6, 1000.0)), 0.0, 0.0, 384.1 / 1e6);
    }

    #[test]
    fn nothing_is_divided_by_a_few_samples() {
        assert_eq!(ratio(stream(1e6, 1000.0), stream(900.0, 9.0)), None);
        assert_eq!(ratio(stream(1e6, 1000.0), stream(0.0, 0.0)), None);
        assert_eq!(ratio(stream(1e6, 1000.0), stream(0.0, 1000.0)), None);
        assert_eq!(ratio(stream(f64::INFINITY, 1000.0), stream(1.0, 1000.0)), None);
        assert_eq!(ratio(Stream { weight: 0.0, samples: 0.0, period: 0.0 }, stream(1e6, 1000.0)), None);
        assert_eq!(ratio(stream(f64::NAN, 1000.0), stream(1.0, 1000.0)), None);
    }
}
