//! Named sets of events.

use super::spec::EventSpec;
use std::fmt;

/// A set of events that has a name. What of it a machine does not have is left out, for nobody asked for it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSet {
    /// How much is done in each cycle, and what most often hinders it.
    Default,
    /// What memory costs.
    Memory,
    /// What mispredicted branches cost.
    Branch,
}

impl EventSet {
    /// Every set.
    pub const ALL: [Self; 3] = [Self::Default, Self::Memory, Self::Branch];

    /// The set of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Memory => "memory",
            Self::Branch => "branch",
        }
    }

    /// Its events, the most telling first, so that a PMU with few counters keeps those.
    pub fn events(self) -> impl Iterator<Item = EventSpec> {
        // Every name is one of perf's.
        self.names().iter().filter_map(|name| name.parse().ok())
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Default => &["cycles", "instructions", "LLC-load-misses", "branch-misses"],
            Self::Memory => &[
                "cycles",
                "instructions",
                "LLC-load-misses",
                "LLC-loads",
                "L1-dcache-load-misses",
                "dTLB-load-misses",
                "page-faults",
            ],
            Self::Branch => &["cycles", "instructions", "branch-misses", "branches"],
        }
    }
}

impl fmt::Display for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_a_set_is_one() {
        for set in EventSet::ALL {
            assert_eq!(set.events().count(), set.names().len(), "{set}");
            assert_eq!(EventSet::of_name(set.name()), Some(set));
            let spellings: Vec<String> = set.events().map(|event| event.to_string()).collect();
            assert_eq!(spellings, set.names());
        }
        assert_eq!(EventSet::of_name("none"), None);
    }
}
