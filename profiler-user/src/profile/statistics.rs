//! Intervals: how far a figure from samples can be from the truth of the run that was sampled.

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

/// The normal quantile for two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

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

/// Number of equally weighted samples that tell as much as these: (Σw)² ÷ Σw² (Kish 1965).
///
/// Takes pairs of a number of samples and their summed weight; within a pair the weights count as equal.
#[must_use]
pub fn effective_samples(amounts: impl IntoIterator<Item = (u64, u64)>) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (samples, weight) in amounts.into_iter().filter(|&(samples, _)| samples > 0) {
        let weight = weight as f64;
        sum += weight;
        squares += weight * weight / samples as f64;
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

    /// The interval must hold the truth in at least 95 of 100 runs when samples are independent draws.
    #[test]
    fn the_interval_covers() {
        let mut state = 0x1234_5678_9abc_def0_u64;
        let mut uniform = || {
            // xorshift64*, Marsaglia 2003.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        };
        for truth in [0.02, 0.3, 0.5] {
            let runs = 10_000;
            let held = (0..runs)
                .filter(|_| {
                    let hits = (0..400).filter(|_| uniform() < truth).count() as u64;
                    share(hits, 400, 400.0).is_some_and(|share| share.low <= truth && truth <= share.high)
                })
                .count();
            let coverage = held as f64 / f64::from(runs);
            assert!((0.93..=0.97).contains(&coverage), "share {truth}: {coverage}");
        }
    }
}
