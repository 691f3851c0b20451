//! Text that is safe to show: names come from strangers' files.

use crate::profile::metrics::Unit;
use crate::profile::statistics::Estimate;

/// What stands for a number that too few samples carry.
pub(super) const DASH: &str = "–";

/// Replaces what would break a line or command a terminal.
pub(super) fn printable(name: &str) -> String {
    crate::printable::printable(name).into_owned()
}

/// A number with a comma between each three digits.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and its noun: "1 sample", "2 samples".
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A share in percent: two digits where they matter.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // 99.96 must not read as all.
    if (99.95..100.0).contains(&percent) || (percent > 0.0 && percent < 0.95) {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A weight in its unit, in words: nanoseconds as seconds.
pub(super) fn weight(weight: u64, unit: &str) -> String {
    if unit == "ns" {
        format!("{:.2} s", weight as f64 / 1e9)
    } else {
        format!("{} {unit}", thousands(weight))
    }
}

/// A metric's value with as many digits as tell something.
pub(super) fn measure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => percent(value),
        Unit::PerSecond => thousands(value.round() as u64),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The interval of a metric.
pub(super) fn range(unit: Unit, estimate: &Estimate) -> String {
    format!("{}–{}", measure(unit, estimate.low), measure(unit, estimate.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(thousands), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (counted(1, "sample"), counted(2000, "sample")),
            ("1 sample".into(), "2,000 samples".into())
        );
        assert_eq!(
            [1.0, 0.9996, 0.5, 0.0012, 0.0].map(percent),
            ["100.0 %", "99.96 %", "50.0 %", "0.12 %", "0.0 %"]
        );
        assert_eq!(weight(2_500_000_000, "ns"), "2.50 s");
    }
}
