//! Time that CPUs were idle.

use std::collections::BTreeMap;
use std::fs;

use crate::events::CpuId;

/// Idle time of each CPU since it was started, at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleTime(BTreeMap<CpuId, u64>);

/// Nanoseconds of a tick of `/proc/stat` (`USER_HZ` is 100 on all machines that are supported).
const TICK: u64 = 10_000_000;

impl IdleTime {
    /// What `/proc/stat` says now.
    pub(super) fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Nanoseconds for which these CPUs were idle since `self`, exact to a tick each.
    pub(super) fn since_start(&self, cpus: impl Iterator<Item = CpuId>) -> u64 {
        let now = Self::now();
        let idle = cpus.filter_map(|cpu| Some(now.0.get(&cpu)?.saturating_sub(*self.0.get(&cpu)?)));
        idle.sum::<u64>() * TICK
    }

    /// Lines `cpuN user nice system idle iowait …` (`proc_stat(5)`).
    fn parse(text: &str) -> Self {
        let cpu = |line: &str| {
            let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
            let cpu = CpuId(fields.next()?.parse().ok()?);
            let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
            Some((cpu, numbers.get(3)? + numbers.get(4)?))
        };
        // The first line adds up all CPUs and has no number.
        Self(text.lines().filter(|line| !line.starts_with("cpu ")).filter_map(cpu).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_added_for_each_cpu() {
        let idle =
            IdleTime::parse("cpu  9 9 9 99 9 0\ncpu0 1 2 3 40 5 6\ncpu1 1 2 3 70 0 6\nintr 1 2 3 4 5\n");
        assert_eq!(idle.0, BTreeMap::from([(CpuId(0), 45), (CpuId(1), 70)]));
    }
}
