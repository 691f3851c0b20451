//! Colours of functions by a metric.

use std::collections::HashMap;

use super::text::measure;
use crate::profile::metrics::Metric;
use crate::profile::{By, Profile, Table};

/// A colour: red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

/// For functions of which too little is known.
const UNKNOWN: Rgb = (200, 200, 200);

/// At the lowest value, in the middle, and at the highest: told apart by who sees no red or no green, too.
const SCALE: [Rgb; 3] = [(33, 102, 172), (247, 247, 220), (178, 24, 43)];

/// Colours by a metric, from blue at its lowest value to red at its highest.
pub(super) struct Coloring {
    values: HashMap<String, f64>,
    low: f64,
    high: f64,
}

impl Coloring {
    /// Colours functions by the metric of themselves and all they call, as the width of a frame counts both.
    pub(super) fn new(profile: &Profile, metric: &Metric) -> Self {
        let table = Table::new(profile, By::Function);
        let values: HashMap<String, f64> = table
            .rows
            .iter()
            .filter_map(|row| Some((row.label.name.to_string(), table.total_metric(metric, row)?.value)))
            .collect();
        let low = values.values().copied().fold(f64::INFINITY, f64::min);
        let high = values.values().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { values, low, high }
    }

    /// The colour of a function.
    pub(super) fn of(&self, function: &str) -> Rgb {
        let Some(value) = self.values.get(function) else { return UNKNOWN };
        let place = if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 };
        let (from, to, part) = if place < 0.5 {
            (SCALE[0], SCALE[1], place * 2.0)
        } else {
            (SCALE[1], SCALE[2], place * 2.0 - 1.0)
        };
        let mix =
            |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round() as u8;
        (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }

    /// What the colours say, in words.
    pub(super) fn legend(&self, metric: &Metric) -> String {
        if self.values.is_empty() {
            return format!("too few samples to colour by {}", metric.title);
        }
        let (low, high) = (measure(metric.unit, self.low), measure(metric.unit, self.high));
        format!("{} from {low} (blue) to {high} (red), too few samples grey", metric.title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    #[test]
    fn colours_follow_the_metric() {
        let mut measured =
            profile(&[("main;slow", 400, 4_000_000), ("main;fast", 400, 4_000_000), ("rare", 1, 10_000)]);
        measured.header.event.name = "cycles".into();
        let counts = [("main;slow", 100, 1_000_000), ("main;fast", 900, 9_000_000)];
        let measured = with_counter(measured, "instructions", &counts);
        let metric = Metric::by_name("ipc").unwrap();
        let coloring = Coloring::new(&measured, metric);
        assert_eq!((coloring.of("slow"), coloring.of("fast")), (SCALE[0], SCALE[2]));
        assert_eq!(coloring.of("main"), SCALE[1]);
        assert_eq!(coloring.of("rare"), UNKNOWN);
        assert_eq!(coloring.legend(metric), "IPC from 0.25 (blue) to 2.25 (red), too few samples grey");
    }
}
