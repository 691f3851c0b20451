//! What an event has counted.

use std::ops::Add;

use perf_event::CountAndTime;

/// What an event has counted so far, samples or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The count, in units of the event, while it ran.
    pub value: u64,
    /// How long the event was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// How long it really ran: less than `enabled_ns` when the kernel shares counters among too many events.
    pub running_ns: u64,
}

impl Counted {
    /// Part of the time that the event had a counter, of the time it was enabled; `None` when it never was.
    pub fn running(self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }

    /// The count for all the time the event was enabled, extrapolated when it ran for a part of it; 0 if it
    /// never ran.
    pub fn scaled(self) -> u64 {
        let value = u128::from(self.value) * u128::from(self.enabled_ns);
        match value.checked_div(u128::from(self.running_ns)) {
            Some(scaled) => u64::try_from(scaled).unwrap_or(u64::MAX),
            None => 0,
        }
    }
}

impl Add for Counted {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            value: self.value.saturating_add(other.value),
            enabled_ns: self.enabled_ns.saturating_add(other.enabled_ns),
            running_ns: self.running_ns.saturating_add(other.running_ns),
        }
    }
}

impl From<CountAndTime> for Counted {
    fn from(counted: CountAndTime) -> Self {
        Self { value: counted.count, enabled_ns: counted.time_enabled, running_ns: counted.time_running }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_counts_never_divide_by_zero() {
        let counted = |value, enabled_ns, running_ns| Counted { value, enabled_ns, running_ns }.scaled();
        assert_eq!(counted(10, 100, 100), 10);
        assert_eq!(counted(10, 100, 50), 20);
        assert_eq!(counted(0, 100, 0), 0);
        assert_eq!(counted(10, 100, 0), 0);
        assert_eq!(counted(u64::MAX, u64::MAX, 1), u64::MAX);
    }
}
