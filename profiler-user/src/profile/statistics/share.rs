//! The share of a function in the whole: Wilson's interval for effective samples.

use super::{Estimate, Z};

/// Share of `part` in `whole`, both weights, with Wilson's 95 % interval for `samples` independent samples.
///
/// Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). `samples` is the effective number
/// where weights differ ([`effective_samples`]). Periodic sampling is at least as precise as independent sampling, so the interval
/// holds the share of this run at least 95 times in 100. `None` without samples or weight.
#[must_use]
pub fn share(part: u64, whole: u64, samples: f64) -> Option<Estimate> {
    if whole == 0 || samples < 1.0 {
        return None;
    }
    let p = part as f64 / whole as f64;
    let z2 = Z * Z;
    let centre = (p + z2 / (2.0 * samples)) / (1.0 + z2 / samples);
    let half = Z / (1.0 + z2 / samples) * (p * (1.0 - p) / samples + z2 / (4.0 * samples * samples)).sqrt();
    Some(Estimate { value: p, low: (centre - half).max(0.0), high: (centre + half).min(1.0) })
}

/// Number of equally weighted samples that tell as much as these: (Σw)² ÷ Σw² (Kish, *Survey Sampling*, 1965).
///
/// Takes pairs of a number of samples and their summed weight; within a pair the weights count as equal.
#[must_use]
pub fn effective_samples(amounts: impl IntoIterator<Item = (u64, u64)>) -> f64 {
    kish(amounts.into_iter().map(|(samples, weight)| (samples as f64, weight as f64)))
}

/// As [`effective_samples`], for weights of any kind.
pub(super) fn kish(amounts: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (samples, weight) in amounts.into_iter().filter(|&(samples, _)| samples > 0.0) {
        sum += weight;
        squares += weight * weight / samples;
    }
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_agrees_with_published_values() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        let cases = [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ];
        for (part, whole, low, high) in cases {
            let share = share(part, whole, whole as f64).unwrap();
            assert!(
                (share.low - low).abs() < 1e-4 && (share.high - high).abs() < 1e-4,
                "{part}/{whole}: {share:?}"
            );
        }
    }

    #[test]
    fn nothing_is_said_without_samples() {
        assert_eq!(share(0, 0, 10.0), None);
        assert_eq!(share(1, 2, 0.0), None);
    }

    #[test]
    fn unequal_weights_count_for_fewer_samples() {
        assert!((effective_samples([(10, 10), (20, 20)]) - 30.0).abs() < 1e-9);
        assert!((effective_samples([(1, 1), (1, 3)]) - 1.6).abs() < 1e-9);
        assert!(effective_samples([]).abs() < 1e-9);
    }
}
