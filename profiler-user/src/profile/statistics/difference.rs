//! Whether two runs differ, and whether any of many comparisons does.

use statrs::distribution::ContinuousCDF as _;

use super::repeat::{Repeat, quantile, student};

/// How far a quantity of one run is from that of another.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Difference {
    /// After less before.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// How often runs of one and the same program differ by as much or more, before any correction for many comparisons ([`holm`]).
    pub p: f64,
}

/// `after` less `before` by Welch's test: the variances may differ.
///
/// Welch, "The generalization of Student's problem when several different population variances are involved", Biometrika 34 (1947).
#[must_use]
pub fn difference(before: &Repeat, after: &Repeat) -> Difference {
    let value = after.value - before.value;
    let variance = before.variance + after.variance;
    let part = |run: &Repeat| (run.variance / variance).powi(2) / run.degrees;
    let degrees = 1.0 / (part(before) + part(after));
    let Some(t) = student(degrees).filter(|_| variance > 0.0) else {
        // Neither run varies at all: any difference is one.
        return Difference { value, low: value, high: value, p: if value == 0.0 { 1.0 } else { 0.0 } };
    };
    let error = variance.sqrt();
    let half = quantile(degrees) * error;
    let p = (2.0 * t.sf((value / error).abs())).clamp(0.0, 1.0);
    Difference { value, low: value - half, high: value + half, p }
}

/// The p values, in their order, corrected for there being several: below 0.05 is significant among all of them.
///
/// Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979). It bounds the chance
/// that anything at all is marked where nothing changed, whatever the dependence: the shares of functions depend on each other, since they add up to 1, and a
/// gate must not fail by chance however many functions there are.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * left).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: f64, variance: f64, degrees: f64) -> Repeat {
        Repeat { value, low: 0.0, high: 1.0, variance, degrees, blocks: 10, block_length: 1 }
    }

    #[test]
    fn welch_agrees_with_the_integral() {
        // Two means of 15: t = 1.98669 at 26.6437 degrees of freedom, where the density integrates to p = 0.05733.
        let (before, after) = (run(20.82, 2.79 * 2.79 / 15.0, 14.0), run(23.12, 3.51 * 3.51 / 15.0, 14.0));
        let found = difference(&before, &after);
        assert!((found.value - 2.30).abs() < 1e-9 && (found.p - 0.057_33).abs() < 1e-4, "{found:?}");
        assert!(found.low < 0.0 && found.high > 4.6, "{found:?}");
    }

    #[test]
    fn runs_that_never_vary_still_compare() {
        assert!(difference(&run(1.0, 0.0, 7.0), &run(1.0, 0.0, 7.0)).p > 0.99);
        assert!(difference(&run(1.0, 0.0, 7.0), &run(0.0, 0.0, 7.0)).p < 1e-9);
        let one = difference(&run(0.0, 0.0, 7.0), &run(1.0, 0.25, 7.0));
        assert!((one.p - 0.0855).abs() < 1e-3, "two errors at seven degrees of freedom: {one:?}");
        assert!(difference(&run(0.0, 1e-300, 7.0), &run(0.0, 1e-300, 7.0)).p > 0.99);
    }

    #[test]
    fn holm_corrects_in_order() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert!(holm(&[]).is_empty());
        assert!((holm(&[0.9, 0.8])[0] - 1.0).abs() < 1e-12);
    }
}
