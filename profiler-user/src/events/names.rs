//! The hardware and software events that perf has a name for.

use perf_event::events::{Hardware, Software};

/// An event, its names and what it counts.
pub(super) struct Named<E> {
    pub(super) event: E,
    /// The name perf prints.
    pub(super) name: &'static str,
    /// The other names perf takes.
    pub(super) aliases: &'static [&'static str],
    /// Plural noun for what is counted.
    pub(super) unit: &'static str,
}

impl<E> Named<E> {
    const fn new(event: E, name: &'static str, aliases: &'static [&'static str], unit: &'static str) -> Self {
        Self { event, name, aliases, unit }
    }

    /// The name perf prints, then its aliases.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &'static str> + use<E> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// `PERF_TYPE_HARDWARE` (perf_event_open(2)); names as in perf-list(1).
pub(super) const HARDWARE: &[Named<Hardware>] = &[
    Named::new(Hardware::CPU_CYCLES, "cycles", &["cpu-cycles"], "cycles"),
    Named::new(Hardware::INSTRUCTIONS, "instructions", &[], "instructions"),
    Named::new(Hardware::CACHE_REFERENCES, "cache-references", &[], "references"),
    Named::new(Hardware::CACHE_MISSES, "cache-misses", &[], "misses"),
    Named::new(Hardware::BRANCH_INSTRUCTIONS, "branches", &["branch-instructions"], "branches"),
    Named::new(Hardware::BRANCH_MISSES, "branch-misses", &[], "misses"),
    Named::new(Hardware::BUS_CYCLES, "bus-cycles", &[], "bus cycles"),
    Named::new(
        Hardware::STALLED_CYCLES_FRONTEND,
        "stalled-cycles-frontend",
        &["idle-cycles-frontend"],
        "stalled cycles",
    ),
    Named::new(
        Hardware::STALLED_CYCLES_BACKEND,
        "stalled-cycles-backend",
        &["idle-cycles-backend"],
        "stalled cycles",
    ),
    Named::new(Hardware::REF_CPU_CYCLES, "ref-cycles", &[], "reference cycles"),
];

/// `PERF_TYPE_SOFTWARE` (perf_event_open(2)); names as in perf-list(1).
pub(super) const SOFTWARE: &[Named<Software>] = &[
    Named::new(Software::CPU_CLOCK, "cpu-clock", &[], "ns"),
    Named::new(Software::TASK_CLOCK, "task-clock", &[], "ns"),
    Named::new(Software::PAGE_FAULTS, "page-faults", &["faults"], "faults"),
    Named::new(Software::CONTEXT_SWITCHES, "context-switches", &["cs"], "switches"),
    Named::new(Software::CPU_MIGRATIONS, "cpu-migrations", &["migrations"], "migrations"),
    Named::new(Software::PAGE_FAULTS_MIN, "minor-faults", &[], "faults"),
    Named::new(Software::PAGE_FAULTS_MAJ, "major-faults", &[], "faults"),
    Named::new(Software::ALIGNMENT_FAULTS, "alignment-faults", &[], "faults"),
    Named::new(Software::EMULATION_FAULTS, "emulation-faults", &[], "faults"),
    Named::new(Software::CGROUP_SWITCHES, "cgroup-switches", &[], "switches"),
];

/// Software events of perf that carry records, never samples.
pub(super) const WITHOUT_SAMPLES: &[&str] = &["bpf-output", "dummy"];

/// The entry that has this name, canonical or alias.
pub(super) fn by_name<E>(table: &'static [Named<E>], name: &str) -> Option<&'static Named<E>> {
    table.iter().find(|named| named.spellings().any(|spelling| spelling == name))
}

/// The entry of an event.
pub(super) fn by_event<E: PartialEq>(table: &'static [Named<E>], event: &E) -> Option<&'static Named<E>> {
    table.iter().find(|named| named.event == *event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn check<E: PartialEq + Copy + std::fmt::Debug>(table: &'static [Named<E>], seen: &mut BTreeSet<&str>) {
        for named in table {
            assert!(!named.unit.is_empty());
            assert_eq!(by_event(table, &named.event).map(|found| found.name), Some(named.name));
            for spelling in named.spellings() {
                assert!(seen.insert(spelling), "{spelling} is there twice");
                assert_eq!(by_name(table, spelling).map(|found| found.event), Some(named.event));
            }
        }
    }

    #[test]
    fn every_name_leads_to_one_event() {
        let mut seen = BTreeSet::new();
        check(HARDWARE, &mut seen);
        check(SOFTWARE, &mut seen);
        assert_eq!(seen.len(), 10 + 4 + 10 + 3);
    }
}
