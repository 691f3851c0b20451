//! The share of a part in the whole.

use super::ratio::odds;
use super::{Estimate, Stream};

/// Share of `part` in `part` and `rest` together, with a 95 % interval for the share in this run.
///
/// Where all samples weigh the same it is Wilson's interval ("Probable inference, the law of succession, and statistical inference", JASA
/// 22, 1927). Where they do not, the part and the rest each count for the samples that they are worth: a rare function may have the heaviest samples,
/// as when the kernel lengthens the period while it runs. Periodic sampling is at least as precise as independent sampling, so the
/// interval holds the share at least 95 times in 100. `None` without samples or weight.
#[must_use]
pub fn share(part: Stream, rest: Stream) -> Option<Estimate> {
    let Estimate { low, high, .. } = odds(part, rest)?;
    let of_odds = |odds: f64| if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
    let value = part.weight / (part.weight + rest.weight);
    Some(Estimate { value, low: of_odds(low), high: of_odds(high) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(samples: f64, period: f64) -> Stream {
        Stream { weight: samples * period, samples, period }
    }

    #[test]
    fn wilson_agrees_with_published_values() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        let cases = [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (20.0, 20.0, 0.8389, 1.0),
            (1.0, 29.0, 0.0061, 0.1718),
        ];
        for (part, whole, low, high) in cases {
            let share = share(stream(part, 7.0), stream(whole - part, 7.0)).unwrap();
            assert!(
                (share.low - low).abs() < 1e-4 && (share.high - high).abs() < 1e-4,
                "{part}/{whole}: {share:?}"
            );
            assert!((share.value - part / whole).abs() < 1e-9);
        }
    }

    #[test]
    fn heavy_samples_count_for_no_more_than_they_are() {
        // A tenth of the weight in 20 samples: a relative error of 1 ÷ √20, however many light samples the rest has.
        let share = share(stream(20.0, 10.0), stream(1800.0, 1.0)).unwrap();
        assert!((share.value - 0.1).abs() < 1e-9 && share.low < 0.07 && share.high > 0.14, "{share:?}");
    }

    #[test]
    fn nothing_is_said_without_samples() {
        let none = Stream { weight: 0.0, samples: 0.0, period: 0.0 };
        assert_eq!(share(none, none), None);
        assert_eq!(share(stream(0.0, 1.0), stream(0.0, 1.0)), None);
    }
}
