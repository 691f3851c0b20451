//! The share of a function in the whole: Wilson's interval for effective samples.

use super::{Estimate, Z};

/// Share of `part` in `whole`, both weights, with Wilson's 95 % interval for `samples` independent samples.
///
/// Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). `samples` is the effective number
/// where weights differ ([`Sum::effective_samples`](crate::profile::Sum::effective_samples)). Periodic sampling is at least as precise as independent sampling, so the interval
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
}
