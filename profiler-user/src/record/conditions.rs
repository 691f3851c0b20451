//! Conditions of the machine that spoil what its PMU says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::profile::Header;
use crate::profile::metrics::{Metric, split_modifiers};

/// What spoils the numbers of this header, a sentence each. Nothing is said of what was not measured.
pub(super) fn spoilers(header: &Header) -> Vec<String> {
    Conditions::read(Path::new("/")).spoilers(header)
}

/// The conditions; what cannot be read is taken for harmless.
struct Conditions {
    /// How CPUs choose their frequency, each way once.
    governors: BTreeSet<String>,
    /// Whether CPUs share cores.
    smt: bool,
    /// Whether the kernel watches for lockups with a counter of each CPU.
    nmi_watchdog: bool,
}

impl Conditions {
    fn read(root: &Path) -> Self {
        let is_on = |path: &str| fs::read_to_string(root.join(path)).is_ok_and(|text| text.trim() == "1");
        let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
        let governors =
            cpus.filter_map(|cpu| fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")).ok());
        Self {
            governors: governors.map(|governor| governor.trim().to_owned()).collect(),
            smt: is_on("sys/devices/system/cpu/smt/active"),
            nmi_watchdog: is_on("proc/sys/kernel/nmi_watchdog"),
        }
    }

    fn spoilers(&self, header: &Header) -> Vec<String> {
        let names: Vec<&str> = header.events().map(|(_, event)| split_modifiers(&event.name).0).collect();
        let metrics: Vec<&str> = Metric::computable(&names).into_iter().map(|metric| metric.name).collect();
        let mut spoilers = Vec::new();
        if let Some(governor) = self.governors.iter().find(|governor| *governor != "performance")
            && ["ipc", "clock-speed"].iter().any(|metric| metrics.contains(metric))
        {
            spoilers.push(format!(
                "the frequency governor is {governor}: the clock changes, and with it how many cycles the same memory access takes; \
                 compare runs under the governor performance"
            ));
        }
        if self.smt && metrics.contains(&"ipc") {
            spoilers.push(
                "SMT is on: what runs on a core's other CPU lowers IPC; /sys/devices/system/cpu/smt/control turns it off"
                    .into(),
            );
        }
        // An event that never waited for a counter lost none to the watchdog.
        if self.nmi_watchdog
            && header.events().any(|(_, event)| event.counted.is_some() && event.running < 0.999)
        {
            spoilers.push(
                "the kernel's watchdog takes a counter of each CPU; sysctl kernel.nmi_watchdog=0 frees it for the events that share"
                    .into(),
            );
        }
        spoilers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::EventInfo;

    fn header(events: &[&str], running: f64) -> Header {
        let mut infos = events.iter().map(|&name| EventInfo {
            name: name.into(),
            counted: Some(1),
            running,
            ..EventInfo::default()
        });
        Header { event: infos.next().unwrap(), counters: infos.collect(), ..Header::default() }
    }

    #[test]
    fn only_what_spoils_a_measured_number_is_said() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let said = |events: &[&str], running| {
            let spoilers = Conditions::read(root.path()).spoilers(&header(events, running));
            spoilers
                .iter()
                .map(|text| text.split(' ').take(2).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert!(said(&["cycles", "instructions"], 0.5).is_empty(), "nothing is known");
        write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
        write("sys/devices/system/cpu/smt/active", "1\n");
        write("proc/sys/kernel/nmi_watchdog", "1\n");
        assert_eq!(said(&["cycles:u", "instructions:u"], 0.5), ["the frequency", "SMT is", "the kernel's"]);
        assert_eq!(said(&["cycles", "instructions"], 1.0), ["the frequency", "SMT is"]);
        assert!(said(&["cpu-clock", "page-faults"], 1.0).is_empty());
    }
}
