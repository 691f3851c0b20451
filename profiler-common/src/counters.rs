//! Counters that are read at samples: what the kernel side keeps of them, and where.

use crate::limits::MAX_COUNTERS;

/// The counters of one CPU at their last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Readings {
    /// What each had counted.
    pub values: [u64; MAX_COUNTERS as usize],
    /// 1 while they are read at a switch of tasks, which a sample may interrupt.
    pub switching: u64,
}

/// Whose increases a residual is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Whose {
    /// Those of tasks that are no targets.
    Others = 0,
    /// Those of targets, from their last sample to the switch.
    Targets = 1,
}

/// Words of the array of residuals for one CPU.
pub const RESIDUALS_PER_CPU: u32 = 2 * MAX_COUNTERS;

/// Words of the array of increases for one slot: for each counter the increase, and the number of readings that found one.
pub const INCREASES_PER_SLOT: u32 = 2 * MAX_COUNTERS;

/// Index of a counter's increase in a slot, by the slot's index in its map; the number of readings follows it.
#[inline(always)]
#[must_use]
pub const fn increase_index(slot: u32, counter: u32) -> u32 {
    slot * INCREASES_PER_SLOT + 2 * counter
}

/// Index of what a counter counted outside of samples.
#[inline(always)]
#[must_use]
pub const fn residual_index(cpu: u32, whose: Whose, counter: u32) -> u32 {
    cpu * RESIDUALS_PER_CPU + whose as u32 * MAX_COUNTERS + counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_do_not_overlap() {
        assert_eq!(
            residual_index(0, Whose::Others, MAX_COUNTERS - 1) + 1,
            residual_index(0, Whose::Targets, 0)
        );
        assert_eq!(
            residual_index(0, Whose::Targets, MAX_COUNTERS - 1) + 1,
            residual_index(1, Whose::Others, 0)
        );
    }
}
