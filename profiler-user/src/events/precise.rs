//! How near a sample's address lies to the instruction that raised it.

use std::fmt;

/// `precise_ip` of perf_event_open(2), 0 to 3: the higher, the less an address may skid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precise(u8);

impl Precise {
    /// Level 0: the address may lie any number of instructions behind.
    pub const ARBITRARY_SKID: Self = Self(0);
    /// Every level, the most precise first.
    pub const LADDER: [Self; 4] = [Self(3), Self(2), Self(1), Self(0)];

    /// The level, or `None` above 3.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= 3 { Some(Self(level)) } else { None }
    }

    /// The level as a number, 0 to 3.
    pub const fn level(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Precise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_0_to_3() {
        assert_eq!(Precise::new(0), Some(Precise::default()));
        assert_eq!(Precise::new(3).map(Precise::level), Some(3));
        assert_eq!(Precise::new(4), None);
        assert!(Precise::LADDER.is_sorted_by(|a, b| a > b));
    }
}
