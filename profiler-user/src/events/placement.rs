//! On which CPUs an event is opened.

use super::cpus::CpuId;
use super::pmu::Pmu;
use super::spec::{EventKind, EventSpec};
use super::system_root::SYSTEM_ROOT;
use std::collections::BTreeSet;
use std::path::Path;

/// Those of the CPUs that an event can be opened on: all of them, but for events of a PMU that serves some.
///
/// The events of a PMU that counts for a whole package are opened on one CPU of it.
pub fn cpus_of(spec: &EventSpec, among: &BTreeSet<CpuId>) -> BTreeSet<CpuId> {
    cpus_of_below(Path::new(SYSTEM_ROOT), spec, among)
}

/// One of the CPUs for each answer that the kernel may give: one for each type of core if the event is one that cores count, else
/// the first one that the event can be opened on, else the first one, where opening it tells why it cannot be.
///
/// Empty only if no CPU is given.
pub fn trial_cpus(spec: &EventSpec, among: &BTreeSet<CpuId>) -> Vec<CpuId> {
    trial_cpus_below(Path::new(SYSTEM_ROOT), spec, among)
}

/// Whether the event is counted for several CPUs at once, as those of memory controllers and of a package's energy are.
pub(super) fn is_shared(spec: &EventSpec) -> bool {
    is_shared_below(Path::new(SYSTEM_ROOT), spec)
}

fn is_shared_below(root: &Path, spec: &EventSpec) -> bool {
    match spec.kind() {
        EventKind::Pmu(event) => Pmu::find(root, event.pmu()).is_ok_and(|pmu| pmu.is_shared()),
        _ => false,
    }
}

fn cpus_of_below(root: &Path, spec: &EventSpec, among: &BTreeSet<CpuId>) -> BTreeSet<CpuId> {
    let served = match spec.kind() {
        EventKind::Pmu(event) => Pmu::find(root, event.pmu()).ok().and_then(|pmu| pmu.cpus()),
        _ => None,
    };
    served.map_or_else(|| among.clone(), |served| served.intersection(among).copied().collect())
}

fn trial_cpus_below(root: &Path, spec: &EventSpec, among: &BTreeSet<CpuId>) -> Vec<CpuId> {
    let first_of = |cpus: BTreeSet<CpuId>| cpus.intersection(among).next().copied();
    let types_of_core: Vec<CpuId> = match spec.kind() {
        EventKind::Hardware(_) | EventKind::Cache(_) | EventKind::Raw(_) => {
            let pmus = Pmu::all(root).unwrap_or_default();
            pmus.iter().filter(|pmu| pmu.is_core()).filter_map(|pmu| first_of(pmu.cpus()?)).collect()
        }
        EventKind::Software(_) | EventKind::Breakpoint(_) | EventKind::Pmu(_) | EventKind::Tracepoint(_) => {
            Vec::new()
        }
    };
    if types_of_core.is_empty() {
        cpus_of_below(root, spec, among).first().or(among.first()).copied().into_iter().collect()
    } else {
        types_of_core
    }
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    /// The PMUs of a hybrid machine, and one that counts for each package.
    fn hybrid() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in
            [("cpu_core/cpus", "0-3\n"), ("cpu_atom/cpus", "4-7\n"), ("uncore_imc/cpumask", "0\n")]
        {
            write(root.path(), &format!("/sys/bus/event_source/devices/{file}"), text);
        }
        root
    }

    fn numbers(cpus: impl IntoIterator<Item = CpuId>) -> Vec<u32> {
        cpus.into_iter().map(|cpu| cpu.0).collect()
    }

    fn range(cpus: std::ops::Range<u32>) -> BTreeSet<CpuId> {
        cpus.map(CpuId).collect()
    }

    #[test]
    fn an_event_of_a_pmu_is_opened_where_the_pmu_is() {
        let root = hybrid();
        let cpus = |event: &str| numbers(cpus_of_below(root.path(), &event.parse().unwrap(), &range(1..6)));
        assert_eq!(cpus("cpu_atom/cycles/"), [4, 5]);
        assert_eq!(cpus("cycles"), [1, 2, 3, 4, 5]);
        assert_eq!(cpus("uncore_imc/event=1/"), [] as [u32; 0]);
        assert_eq!(cpus("no_such_pmu/event=1/"), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_is_outside_the_cores_is_shared() {
        let root = hybrid();
        let shared = |event: &str| is_shared_below(root.path(), &event.parse().unwrap());
        assert!(shared("uncore_imc/event=1/"));
        assert!(!shared("cpu_core/cycles/") && !shared("cycles") && !shared("no_such_pmu/event=1/"));
    }

    #[test]
    fn each_type_of_core_is_asked_for_what_cores_count() {
        let root = hybrid();
        let on =
            |event: &str, cpus| numbers(trial_cpus_below(root.path(), &event.parse().unwrap(), &range(cpus)));
        for event in ["cycles", "LLC-loads", "r01c4"] {
            assert_eq!(on(event, 1..8), [4, 1], "{event}");
            assert_eq!(on(event, 1..4), [1], "{event}");
        }
        assert_eq!(on("page-faults", 1..8), [1]);
        assert_eq!(on("cpu_atom/cycles/", 1..8), [4]);
        assert_eq!(on("uncore_imc/event=1/", 1..8), [1]);
        assert_eq!(on("cycles", 0..0), [] as [u32; 0]);
        let uniform = tempfile::tempdir().unwrap();
        assert_eq!(numbers(trial_cpus_below(uniform.path(), &EventSpec::cycles(), &range(2..4))), [2]);
    }
}
