//! What the host allows and offers, as far as it bears on perf events.

use super::cpus::{self, CpuId};
use super::pmu::Pmu;
use super::system_root::{SYSTEM_ROOT, below};
use caps::{CapSet, Capability, CapsHashSet};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What the host allows and offers, read once to explain refusals. A fact that cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// `kernel.perf_event_paranoid`; some distributions have levels 3 and 4.
    pub paranoid: Option<i32>,
    /// `kernel.perf_event_max_sample_rate` in Hz. The kernel lowers it when sampling takes too long.
    pub max_sample_rate: Option<u64>,
    /// Names of the PMUs in `/sys/bus/event_source/devices`, sorted.
    pub pmus: Option<Vec<String>>,
    /// Whether one of them is the PMU of the CPU cores.
    pub has_core_pmu: Option<bool>,
    /// Effective capabilities of this process.
    pub capabilities: Option<CapsHashSet>,
    /// Whether the capabilities count in a user namespace only, not on the host.
    pub in_user_namespace: Option<bool>,
    /// Whether a seccomp filter watches this process's system calls, as in most containers.
    pub has_seccomp_filter: Option<bool>,
    /// Whether the CPU says that it runs under a hypervisor (x86 only).
    pub is_virtual_machine: Option<bool>,
    /// The CPUs that were online.
    pub online_cpus: Option<BTreeSet<CpuId>>,
    /// Soft limit of open files, `ulimit -n`; `None` also when there is no limit.
    pub open_files_limit: Option<u64>,
}

impl HostFacts {
    /// The facts of this host and process. Never fails: what cannot be read is `None`.
    ///
    /// Files are read, so read the facts before the events use up the file descriptors.
    pub fn read() -> Self {
        let open_files_limit = getrlimit(Resource::Nofile).current;
        Self {
            open_files_limit,
            ..Self::from_root(Path::new(SYSTEM_ROOT), caps::read(None, CapSet::Effective).ok())
        }
    }

    /// The facts in the `proc` and `sys` below this folder, which do not tell [`Self::open_files_limit`].
    pub fn from_root(root: &Path, capabilities: Option<CapsHashSet>) -> Self {
        let text = |path: &str| fs::read_to_string(below(root, path)).ok();
        let pmus = Pmu::all(root);
        Self {
            paranoid: text("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.trim().parse().ok()),
            max_sample_rate: text("/proc/sys/kernel/perf_event_max_sample_rate")
                .and_then(|text| text.trim().parse().ok()),
            has_core_pmu: pmus.as_ref().map(|pmus| pmus.iter().any(Pmu::is_core)),
            pmus: pmus.map(|pmus| pmus.iter().map(|pmu| pmu.name().to_owned()).collect()),
            capabilities,
            in_user_namespace: text("/proc/self/uid_map").map(|map| !maps_all_users(&map)),
            has_seccomp_filter: text("/proc/self/status").and_then(|status| has_seccomp_filter(&status)),
            is_virtual_machine: text("/proc/cpuinfo").and_then(|cpuinfo| has_hypervisor_flag(&cpuinfo)),
            online_cpus: cpus::read_list(&below(root, cpus::ONLINE)).ok(),
            open_files_limit: None,
        }
    }

    /// Whether the process has this capability on the host; `None` when that is not known.
    pub fn has_capability(&self, capability: Capability) -> Option<bool> {
        self.capabilities.as_ref().map(|capabilities| capabilities.contains(&capability))
    }
}

/// The first namespace maps every user to itself (user_namespaces(7)).
fn maps_all_users(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// `Seccomp:` of proc_pid_status(5): 0 none, 1 strict, 2 filter.
fn has_seccomp_filter(status: &str) -> Option<bool> {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
    Some(mode.trim() != "0")
}

fn has_hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    #[test]
    fn an_empty_root_gives_no_facts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(HostFacts::from_root(root.path(), None), HostFacts::default());
    }

    #[test]
    fn every_fact_is_read() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
        write(root, "/proc/sys/kernel/perf_event_max_sample_rate", "63000\n");
        write(root, "/sys/bus/event_source/devices/software/type", "1\n");
        write(root, "/sys/bus/event_source/devices/cpu/type", "4\n");
        write(root, "/proc/self/uid_map", "         0          0 4294967295\n");
        write(root, "/proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        write(root, "/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor sse\n");
        write(root, "/sys/devices/system/cpu/online", "0-1\n");
        let capabilities = CapsHashSet::from([Capability::CAP_PERFMON]);
        let facts = HostFacts::from_root(root, Some(capabilities.clone()));
        let expected = HostFacts {
            paranoid: Some(-1),
            max_sample_rate: Some(63_000),
            pmus: Some(vec!["cpu".to_owned(), "software".to_owned()]),
            has_core_pmu: Some(true),
            capabilities: Some(capabilities),
            in_user_namespace: Some(false),
            has_seccomp_filter: Some(true),
            is_virtual_machine: Some(true),
            online_cpus: Some([CpuId(0), CpuId(1)].into()),
            open_files_limit: None,
        };
        assert_eq!(facts, expected);
        assert_eq!(facts.has_capability(Capability::CAP_PERFMON), Some(true));
        assert_eq!(facts.has_capability(Capability::CAP_SYS_ADMIN), Some(false));
        assert_eq!(HostFacts::default().has_capability(Capability::CAP_PERFMON), None);
    }

    #[test]
    fn core_pmus_by_name_and_by_their_cpus() {
        let has_core_pmu = |files: &[&str]| {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                write(root.path(), &format!("/sys/bus/event_source/devices/{file}"), "0\n");
            }
            HostFacts::from_root(root.path(), None).has_core_pmu
        };
        assert_eq!(has_core_pmu(&["breakpoint/type", "msr/type", "uncore_imc/cpumask"]), Some(false));
        assert_eq!(has_core_pmu(&["cpu/type"]), Some(true));
        assert_eq!(has_core_pmu(&["cpu_core/cpus", "cpu_atom/cpus"]), Some(true));
        assert_eq!(has_core_pmu(&["armv8_pmuv3/type"]), Some(true));
        assert_eq!(has_core_pmu(&["apple_icestorm_pmu/cpus"]), Some(true));
    }

    #[test]
    fn nonsense_is_no_fact() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for path in ["/proc/sys/kernel/perf_event_paranoid", "/proc/self/status", "/proc/cpuinfo"] {
            write(root, path, "\0nonsense\u{fffd}");
        }
        assert_eq!(HostFacts::from_root(root, None), HostFacts::default());
    }

    #[test]
    fn an_unprivileged_container_is_a_user_namespace() {
        assert!(!maps_all_users("0 100000 65536\n"));
        assert!(!maps_all_users(""));
    }

    #[test]
    fn this_host_has_facts() {
        let facts = HostFacts::read();
        assert!(facts.paranoid.is_some() && facts.pmus.is_some() && facts.capabilities.is_some());
        assert_eq!(facts.online_cpus, cpus::online().ok());
    }
}
