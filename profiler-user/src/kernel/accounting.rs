//! What became of everything that events counted.

use std::iter::Sum;
use std::ops::AddAssign;

use crate::events::{Counted, EventSpec};

/// A number of samples and their weight in the event's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Samples.
    pub samples: u64,
    /// Sum of their periods.
    pub weight: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight += other.weight;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}

/// What a counter counted that is read at samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterAccounting {
    /// On all CPUs.
    pub counted: Counted,
    /// Of that, while tasks ran that are no targets.
    pub others: u64,
    /// Of that, while targets ran, but in no sample: what came after the last one before another task ran.
    pub residual: u64,
}

/// What became of everything the event counted. Every delivery is in exactly one of the amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Samples of targets, in the profile.
    pub kept: Amount,
    /// Samples of other tasks.
    pub not_target: Amount,
    /// Samples of idle CPUs.
    pub idle: Amount,
    /// Samples in user mode while only the kernel was asked for.
    pub user_mode_left_out: Amount,
    /// Samples that were wanted and are gone, by cause; causes without any are absent.
    pub lost: Vec<(Lost, Amount)>,
    /// What the event counted on all CPUs.
    pub counted: Counted,
    /// The weight that samples should have for that.
    pub expected: u64,
    /// What of that it counted on idle CPUs, where samples may not come: idle time for the clocks, else nothing.
    pub counted_idle: u64,
    /// Times that the kernel stopped an event for the rest of a tick because it came too often.
    pub throttles: u64,
    /// Processes or threads that could not be followed.
    pub not_followed: u64,
}

/// Why a wanted sample is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// The sample table of the CPU was full.
    TableFull,
    /// The frame store of the CPU was full.
    FramesFull,
    /// The kernel gave the program no working space.
    NoScratch,
}

impl Lost {
    /// The cause in words that fit behind "lost:".
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::TableFull => "the kernel's sample table was full",
            Self::FramesFull => "the kernel's frame store was full",
            Self::NoScratch => "the kernel gave no working space",
        }
    }
}

impl Accounting {
    /// Sum of the periods of all deliveries.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.fates().map(|amount| amount.weight).sum()
    }

    fn delivered_samples(&self) -> u64 {
        self.fates().map(|amount| amount.samples).sum()
    }

    fn fates(&self) -> impl Iterator<Item = Amount> {
        let lost = self.lost.iter().map(|(_, amount)| *amount);
        [self.kept, self.not_target, self.idle, self.user_mode_left_out].into_iter().chain(lost)
    }

    /// Share of what the event counted that came without a sample: where programs were not run, or the kernel throttled.
    ///
    /// `None` for so few samples that the last, unfinished periods would make up much of it.
    #[must_use]
    pub fn undelivered(&self) -> Option<f64> {
        const FEW: u64 = 100;
        let counted = self.expected.saturating_sub(self.counted_idle);
        let delivered = self.delivered().saturating_sub(self.idle.weight.min(self.counted_idle));
        if self.delivered_samples() < FEW || counted == 0 {
            return None;
        }
        Some((1.0 - delivered as f64 / counted as f64).max(0.0))
    }

    /// All that is known to be lost.
    #[must_use]
    pub fn lost_total(&self) -> Amount {
        self.lost.iter().map(|(_, amount)| *amount).sum()
    }
}

/// The weight that samples should have for what an event counted.
///
/// A clock does not count while the kernel throttles it, so its samples are held against the time it was enabled. What modifiers keep a
/// clock from sampling it counts all the same; then nothing can be said.
pub(super) fn expected(event: &EventSpec, counted: Counted) -> u64 {
    let modifiers = event.modifiers();
    match event.is_clock() {
        true if modifiers.exclude_user() || modifiers.exclude_kernel() => 0,
        true => counted.enabled_ns,
        false => counted.value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delivery_is_accounted_for_once() {
        let amount = |n| Amount { samples: n, weight: 10 * n };
        let accounting = Accounting {
            kept: amount(1),
            not_target: amount(2),
            idle: amount(4),
            user_mode_left_out: amount(8),
            lost: vec![(Lost::TableFull, amount(16)), (Lost::FramesFull, amount(32))],
            ..Accounting::default()
        };
        assert_eq!(accounting.delivered(), 630);
        assert_eq!(accounting.lost_total(), amount(48));
    }
}
