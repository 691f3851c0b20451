//! How often an event is sampled.

use super::spec::EventSpec;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

/// How often an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// So many samples a second on each CPU; the kernel adapts the period to it.
    Frequency(NonZeroU32),
    /// One sample each time the event has counted so many of its units.
    Period(NonZeroU64),
}

impl Rate {
    /// 997 Hz: a prime, so that sampling does not march in step with periodic work.
    pub const DEFAULT_FREQUENCY: Self = Self::Frequency(NonZeroU32::MIN.saturating_add(996));
    /// Every single event is a sample.
    pub const EVERY: Self = Self::Period(NonZeroU64::MIN);

    /// The rate in words, in the units of the event: `997 Hz`, `every 1000 cycles`, `all executions`.
    pub fn describe(self, event: &EventSpec) -> String {
        self.in_units(event.unit())
    }

    fn in_units(self, unit: &str) -> String {
        match self {
            Self::Frequency(hertz) => format!("{hertz} Hz"),
            Self::EVERY => format!("all {unit}"),
            Self::Period(period) => format!("every {period} {unit}"),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_units("events"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_take_the_unit_of_the_event() {
        let period = Rate::Period(NonZeroU64::new(1000).unwrap());
        let cycles = EventSpec::cycles();
        assert_eq!(Rate::DEFAULT_FREQUENCY.describe(&cycles), "997 Hz");
        assert_eq!(period.describe(&cycles), "every 1000 cycles");
        assert_eq!(period.describe(&EventSpec::cpu_clock()), "every 1000 ns");
        assert_eq!(Rate::EVERY.describe(&"mem:16:x".parse().unwrap()), "all executions");
        assert_eq!(Rate::DEFAULT_FREQUENCY.to_string(), "997 Hz");
        assert_eq!(period.to_string(), "every 1000 events");
    }
}
