//! The table from the kernel's answer to a cause and a remedy.

use super::cpus::CpuId;
use super::host_facts::HostFacts;
use super::open_error::{Failure, OpenError, Purpose};
use super::precise::Precise;
use super::rate::Rate;
use super::spec::{EventKind, EventSpec};
use caps::Capability;
use perf_event::events::{Breakpoint, BreakpointAccess};
use std::io;
use std::num::NonZeroU64;

/// A cause and a remedy, each a clause without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) cause: String,
    pub(super) remedy: String,
}

/// The table: errno, then what was asked, then the facts.
pub(super) fn explain(error: &OpenError, facts: &HostFacts) -> Advice {
    if let Failure::Unknown { cause, remedy } = &error.failure {
        return advice(cause, remedy);
    }
    match error.errno() {
        libc::ENODEV if is_offline(error.cpu, facts) => {
            advice(format!("CPU {} is offline", error.cpu), "bring it online, or leave it out with -C")
        }
        libc::EPERM | libc::ENOMEM | libc::EAGAIN if matches!(error.failure, Failure::MapRing { .. }) => {
            advice(
                "its ring exceeds the memory that may be locked",
                "run as root, or raise kernel.perf_event_mlock_kb or `ulimit -l`",
            )
        }
        libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO => not_offered(error, facts),
        libc::EACCES | libc::EPERM => not_permitted(&error.event, facts),
        libc::EINVAL => invalid(error, facts),
        libc::EBUSY => advice(
            "the PMU is in use by something that does not share it",
            "stop other profilers and hypervisors, or set kernel.nmi_watchdog=0",
        ),
        libc::EMFILE => out_of_descriptors(facts),
        libc::ENFILE => advice("the system has no file descriptor left", "raise fs.file-max"),
        libc::ENOSPC => no_slot(&error.event),
        libc::EPROTO => advice(
            format!(
                "precise level {} does not go with the BPF program's stack helper",
                error.purpose.precise()
            ),
            "leave `p` out",
        ),
        libc::ENOMEM => {
            advice("the kernel is out of memory for it", "free memory, or sample fewer events or CPUs")
        }
        libc::E2BIG => advice("this kernel does not know an option it needs", "use Linux 6.1 or newer"),
        libc::ENOSYS => advice("this kernel has no perf events", "use a kernel with CONFIG_PERF_EVENTS"),
        errno => advice(format!("{}", io::Error::from_raw_os_error(errno)), "see the kernel's log (dmesg)"),
    }
}

pub(super) fn advice(cause: impl Into<String>, remedy: impl Into<String>) -> Advice {
    Advice { cause: cause.into(), remedy: remedy.into() }
}

/// The kernel refuses periods with the highest bit set (kernel/events/core.c).
const LONGEST_PERIOD: u64 = (1 << 63) - 1;

fn is_offline(cpu: CpuId, facts: &HostFacts) -> bool {
    facts.online_cpus.as_ref().is_some_and(|online| !online.contains(&cpu))
}

/// No PMU took the event.
fn not_offered(error: &OpenError, facts: &HostFacts) -> Advice {
    let instead = match error.purpose {
        Purpose::Sample { .. } => "use -e cpu-clock",
        Purpose::Count => "leave it out",
    };
    let without_pmu = || format!("{instead}, or run on bare metal or enable the virtual PMU");
    let without_event = || format!("{instead}, or take another event");
    match error.event.kind() {
        EventKind::Software(_) => advice("this kernel does not have it", instead),
        EventKind::Breakpoint(_) => advice("this CPU or kernel has no hardware breakpoints", instead),
        _ if facts.has_core_pmu == Some(false) => {
            let machine = if facts.is_virtual_machine == Some(true) { "virtual machine" } else { "machine" };
            advice(format!("this {machine} exposes no hardware PMU"), without_pmu())
        }
        _ if error.purpose.precise() != Precise::ARBITRARY_SKID => no_such_precise_level(error),
        _ if error.errno() == libc::EOPNOTSUPP => {
            advice(format!("the PMU cannot {} it", error.purpose), without_event())
        }
        _ if facts.has_core_pmu == Some(true) => advice("this CPU's PMU does not have it", without_event()),
        _ => advice("no hardware PMU here offers it", without_pmu()),
    }
}

fn no_such_precise_level(error: &OpenError) -> Advice {
    advice(
        format!("this CPU does not offer it at precise level {}", error.purpose.precise()),
        "use fewer `p`, or none for the best level there is",
    )
}

fn not_permitted(event: &EventSpec, facts: &HostFacts) -> Advice {
    let has = |capability| facts.has_capability(capability);
    let is_admin = has(Capability::CAP_SYS_ADMIN);
    let paranoid = facts.paranoid.map_or("unknown".to_owned(), |level| level.to_string());
    if facts.in_user_namespace == Some(true) {
        return advice("capabilities of a container's user namespace do not count for the host", ON_THE_HOST);
    }
    if has(Capability::CAP_PERFMON) == Some(false) && is_admin == Some(false) {
        return advice(
            format!("watching a whole CPU needs CAP_PERFMON (kernel.perf_event_paranoid is {paranoid})"),
            "run it with sudo, or give it CAP_PERFMON and CAP_BPF with setcap",
        );
    }
    if is_admin == Some(false) && watches_kernel(event) {
        return advice("a breakpoint in the kernel needs CAP_SYS_ADMIN", "run it with sudo");
    }
    if is_admin == Some(false) && facts.paranoid.is_some_and(|level| level > STRICTEST_UPSTREAM_LEVEL) {
        return advice(
            format!("this distribution's kernel.perf_event_paranoid {paranoid} asks for CAP_SYS_ADMIN"),
            format!("run it with sudo, or set kernel.perf_event_paranoid={STRICTEST_UPSTREAM_LEVEL}"),
        );
    }
    if facts.has_seccomp_filter == Some(true) {
        return advice(
            "a seccomp filter forbids perf_event_open, as container runtimes do",
            "allow it in the container's seccomp profile, or run on the host",
        );
    }
    if facts.capabilities.is_none() {
        return advice(
            format!("it is not permitted (kernel.perf_event_paranoid is {paranoid})"),
            "run it with sudo, or give it CAP_PERFMON and CAP_BPF with setcap",
        );
    }
    advice("a security module (SELinux, AppArmor, lockdown) forbids it", "see the kernel's log (dmesg)")
}

const ON_THE_HOST: &str = "run on the host, or in a privileged container";

/// Levels above it come from patches of Debian, Ubuntu and Android.
const STRICTEST_UPSTREAM_LEVEL: i32 = 2;

fn watches_kernel(event: &EventSpec) -> bool {
    matches!(event.kind(), EventKind::Breakpoint(breakpoint) if is_kernel_address(address(breakpoint)))
}

/// Both x86_64 and aarch64 give the kernel the upper half of the address space.
fn is_kernel_address(address: u64) -> bool {
    address >> 63 == 1
}

fn address(breakpoint: &Breakpoint) -> u64 {
    match *breakpoint {
        Breakpoint::Code { addr } | Breakpoint::Data { addr, .. } => addr,
    }
}

fn invalid(error: &OpenError, facts: &HostFacts) -> Advice {
    error
        .purpose
        .rate()
        .and_then(|rate| invalid_rate(rate, facts))
        .or_else(|| invalid_breakpoint(&error.event))
        .unwrap_or_else(|| match error.event.kind() {
            _ if is_offline(error.cpu, facts) => {
                advice(format!("there is no CPU {}", error.cpu), "leave it out with -C")
            }
            _ if error.purpose.precise() != Precise::ARBITRARY_SKID => no_such_precise_level(error),
            EventKind::Raw(_) => {
                advice("the CPU's PMU has no event with this code", "see the CPU vendor's manual")
            }
            EventKind::Pmu(event) => advice(
                format!("PMU `{}` does not take these terms, modifiers or this rate", event.pmu()),
                "see the vendor's manual, and leave modifiers out",
            ),
            _ => advice("the kernel does not take it with these modifiers", "leave the modifiers out"),
        })
}

/// Why the kernel does not take a rate, if it does not.
pub(super) fn invalid_rate(rate: Rate, facts: &HostFacts) -> Option<Advice> {
    match rate {
        Rate::Frequency(hertz) => {
            let most = facts.max_sample_rate.filter(|&most| u64::from(hertz.get()) > most)?;
            Some(advice(
                format!("{hertz} Hz is above kernel.perf_event_max_sample_rate, {most} Hz"),
                format!("use -F {most} or less, or raise that sysctl"),
            ))
        }
        Rate::Period(period) => (period > NonZeroU64::new(LONGEST_PERIOD)?).then(|| {
            advice(
                format!("the period {period} is above {LONGEST_PERIOD}, the highest that the kernel takes"),
                "use a shorter one",
            )
        }),
    }
}

fn invalid_breakpoint(event: &EventSpec) -> Option<Advice> {
    let EventKind::Breakpoint(breakpoint) = event.kind() else { return None };
    if watches_kernel(event) && event.modifiers().exclude_kernel() {
        return Some(advice(
            "the address is the kernel's, and the modifier `u` leaves the kernel out",
            "leave `u` out",
        ));
    }
    Some(match *breakpoint {
        Breakpoint::Data { access: BreakpointAccess::READ, .. } if cfg!(target_arch = "x86_64") => {
            advice("x86 cannot watch reads alone", "use rw")
        }
        Breakpoint::Data { addr, len, .. } if !addr.is_multiple_of(len.max(1)) => advice(
            format!("address {addr:#x} is not a multiple of the length {len}"),
            "use a shorter length, or an aligned address",
        ),
        // Without CONFIG_KPROBES the kernel lets none of its code be watched
        // (arch/x86/kernel/hw_breakpoint.c).
        _ if watches_kernel(event) => advice(
            "this kernel does not let this address of its own be watched",
            "use an address of the target's memory",
        ),
        _ => advice("the CPU cannot watch this address", "use an address of the target's memory"),
    })
}

/// Every event takes one descriptor for each CPU.
fn out_of_descriptors(facts: &HostFacts) -> Advice {
    let limit = facts.open_files_limit.map_or(String::new(), |limit| format!(", and `ulimit -n` is {limit}"));
    let wanted =
        facts.online_cpus.as_ref().map_or("one for each CPU".to_owned(), |cpus| cpus.len().to_string());
    advice(
        format!("no file descriptor is left: each event takes {wanted}{limit}"),
        "raise `ulimit -n`, or sample fewer events or CPUs",
    )
}

fn no_slot(event: &EventSpec) -> Advice {
    if matches!(event.kind(), EventKind::Breakpoint(_)) {
        // x86 has four; aarch64 has 2 to 16 of each kind.
        advice(
            "all debug registers of a CPU are in use (x86 has 4)",
            "use fewer breakpoints, or end the debugger",
        )
    } else {
        advice("the PMU has no counter left for it", "use fewer events, or stop other profilers")
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::Refusal;
    use super::*;
    use caps::CapsHashSet;
    use std::num::NonZeroU32;

    fn failed(event: &str, errno: i32) -> OpenError {
        let event: EventSpec = event.parse().unwrap();
        OpenError {
            purpose: Purpose::Sample { rate: event.default_rate(), precise: Precise::ARBITRARY_SKID },
            event,
            cpu: CpuId(0),
            failure: Failure::Open { errno },
        }
    }

    fn at_level(level: u8, error: OpenError) -> OpenError {
        let precise = Precise::new(level).unwrap();
        OpenError { purpose: Purpose::Sample { rate: Rate::DEFAULT_FREQUENCY, precise }, ..error }
    }

    fn text(error: &OpenError, facts: &HostFacts) -> String {
        Refusal::new(error, facts).to_string()
    }

    fn with_capabilities(capabilities: &[Capability], paranoid: i32) -> HostFacts {
        HostFacts {
            paranoid: Some(paranoid),
            capabilities: Some(CapsHashSet::from_iter(capabilities.iter().copied())),
            ..HostFacts::default()
        }
    }

    #[track_caller]
    fn check(error: &OpenError, facts: &HostFacts, words: &[&str]) {
        let text = text(error, facts);
        for word in words {
            assert!(text.contains(word), "`{word}` is not in: {text}");
        }
        assert!(text.starts_with(&format!("cannot {} `{}`: ", error.purpose, error.event)), "{text}");
        assert!(text.len() < 220, "too long: {text}");
    }

    #[test]
    fn no_pmu_and_a_pmu_without_the_event() {
        let pmu = |has, virtual_machine| HostFacts {
            has_core_pmu: has,
            is_virtual_machine: Some(virtual_machine),
            ..HostFacts::default()
        };
        for errno in [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV] {
            for event in ["cycles", "LLC-load-misses", "r01c4", "cycles:ppp"] {
                let failed = failed(event, errno);
                check(
                    &failed,
                    &pmu(Some(false), true),
                    &["this virtual machine exposes no hardware PMU; use -e cpu-clock"],
                );
                check(
                    &failed,
                    &pmu(Some(false), false),
                    &["this machine exposes no hardware PMU", "bare metal"],
                );
            }
        }
        check(
            &failed("bus-cycles", libc::ENOENT),
            &pmu(Some(true), false),
            &["this CPU's PMU does not have it"],
        );
        check(
            &failed("bus-cycles", libc::EOPNOTSUPP),
            &pmu(Some(true), false),
            &["the PMU cannot sample it"],
        );
        check(&failed("cycles", libc::ENOENT), &pmu(None, false), &["no hardware PMU here offers it"]);
        check(
            &failed("cgroup-switches", libc::ENOENT),
            &pmu(Some(false), true),
            &["this kernel does not have it"],
        );
        check(&failed("mem:16:x", libc::EOPNOTSUPP), &pmu(Some(true), true), &["no hardware breakpoints"]);
    }

    #[test]
    fn a_counter_is_not_replaced_by_a_clock() {
        let counter = |event: &str, errno| OpenError { purpose: Purpose::Count, ..failed(event, errno) };
        let without_pmu = HostFacts { has_core_pmu: Some(false), ..HostFacts::default() };
        check(
            &counter("cycles", libc::ENOENT),
            &without_pmu,
            &["exposes no hardware PMU; leave it out, or run on bare metal"],
        );
        check(&counter("cgroup-switches", libc::ENOENT), &without_pmu, &["does not have it; leave it out"]);
        let with_pmu = HostFacts { has_core_pmu: Some(true), ..HostFacts::default() };
        check(
            &counter("bus-cycles", libc::EOPNOTSUPP),
            &with_pmu,
            &["the PMU cannot count it; leave it out"],
        );
    }

    #[test]
    fn offline_and_absent_cpus() {
        let facts = HostFacts { online_cpus: Some([CpuId(0), CpuId(2)].into()), ..HostFacts::default() };
        let on_cpu_1 = |errno| OpenError { cpu: CpuId(1), ..failed("cycles", errno) };
        check(&on_cpu_1(libc::ENODEV), &facts, &["CPU 1 is offline", "-C"]);
        check(&on_cpu_1(libc::EINVAL), &facts, &["there is no CPU 1"]);
    }

    #[test]
    fn permission_names_what_is_missing() {
        for errno in [libc::EACCES, libc::EPERM] {
            let cycles = failed("cycles", errno);
            check(
                &cycles,
                &with_capabilities(&[], 2),
                &["needs CAP_PERFMON", "perf_event_paranoid is 2", "sudo", "setcap"],
            );
            check(&cycles, &with_capabilities(&[], 4), &["needs CAP_PERFMON", "perf_event_paranoid is 4"]);
            let perfmon = [Capability::CAP_PERFMON];
            check(
                &cycles,
                &with_capabilities(&perfmon, 3),
                &["distribution's kernel.perf_event_paranoid 3", "CAP_SYS_ADMIN"],
            );
            check(&cycles, &with_capabilities(&perfmon, 2), &["security module"]);
            let admin = with_capabilities(&[Capability::CAP_SYS_ADMIN], 3);
            check(
                &cycles,
                &HostFacts { has_seccomp_filter: Some(true), ..admin.clone() },
                &["seccomp", "container"],
            );
            check(
                &cycles,
                &HostFacts { in_user_namespace: Some(true), ..admin },
                &["user namespace", "host"],
            );
            check(&cycles, &HostFacts::default(), &["not permitted (kernel.perf_event_paranoid is unknown)"]);
            let kernel = failed("mem:0xffffffff81000000:x", errno);
            check(
                &kernel,
                &with_capabilities(&perfmon, 2),
                &["breakpoint in the kernel needs CAP_SYS_ADMIN"],
            );
        }
    }

    #[test]
    fn rates_that_the_kernel_refuses() {
        let facts = HostFacts { max_sample_rate: Some(63_000), ..HostFacts::default() };
        let at = |rate| {
            let purpose = Purpose::Sample { rate, precise: Precise::ARBITRARY_SKID };
            OpenError { purpose, ..failed("cycles", libc::EINVAL) }
        };
        let hertz = |hertz| Rate::Frequency(NonZeroU32::new(hertz).unwrap());
        check(
            &at(hertz(99_999)),
            &facts,
            &["99999 Hz is above kernel.perf_event_max_sample_rate, 63000 Hz", "-F 63000"],
        );
        check(
            &at(Rate::Period(NonZeroU64::MAX)),
            &facts,
            &["the period 18446744073709551615 is above 9223372036854775807"],
        );
        check(&at(hertz(63_000)), &facts, &["with these modifiers"]);
    }

    #[test]
    fn breakpoints_that_a_cpu_cannot_watch() {
        let facts = HostFacts::default();
        check(
            &failed("mem:0x1001/8:w", libc::EINVAL),
            &facts,
            &["0x1001 is not a multiple of the length 8", "aligned"],
        );
        check(
            &failed("mem:0xffffffff81000000:x:u", libc::EINVAL),
            &facts,
            &["the address is the kernel's", "leave `u` out"],
        );
        check(&failed("mem:0xffffffff81000000:x", libc::EINVAL), &facts, &["address of its own"]);
        check(&failed("mem:0x1000:x", libc::EINVAL), &facts, &["cannot watch this address"]);
        #[cfg(target_arch = "x86_64")]
        check(&failed("mem:0x1000:r", libc::EINVAL), &facts, &["x86 cannot watch reads alone; use rw"]);
    }

    #[test]
    fn precise_levels() {
        let facts = HostFacts { has_core_pmu: Some(true), ..HostFacts::default() };
        for errno in [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT] {
            check(
                &at_level(3, failed("cycles:ppp", errno)),
                &facts,
                &["does not offer it at precise level 3", "fewer `p`"],
            );
        }
        check(&at_level(2, failed("cycles:pp", libc::EPROTO)), &facts, &["precise level 2", "leave `p` out"]);
    }

    #[test]
    fn what_is_used_up() {
        let facts = HostFacts {
            open_files_limit: Some(256),
            online_cpus: Some((0..64).map(CpuId).collect()),
            ..HostFacts::default()
        };
        check(
            &failed("cycles", libc::EMFILE),
            &facts,
            &["each event takes 64", "`ulimit -n` is 256", "raise `ulimit -n`"],
        );
        check(&failed("cycles", libc::EMFILE), &HostFacts::default(), &["each event takes one for each CPU"]);
        check(&failed("cycles", libc::ENFILE), &facts, &["fs.file-max"]);
        check(&failed("cycles", libc::EBUSY), &facts, &["in use", "nmi_watchdog"]);
        check(
            &failed("mem:16:x", libc::ENOSPC),
            &facts,
            &["debug registers", "x86 has 4", "fewer breakpoints"],
        );
        check(&failed("cycles", libc::ENOSPC), &facts, &["no counter left"]);
        check(&failed("cycles", libc::ENOMEM), &facts, &["out of memory"]);
        for errno in [libc::EPERM, libc::ENOMEM, libc::EAGAIN] {
            let error = OpenError { failure: Failure::MapRing { errno }, ..failed("cycles", errno) };
            check(&error, &facts, &["memory that may be locked", "perf_event_mlock_kb"]);
        }
    }

    #[test]
    fn every_other_errno_keeps_the_systems_words() {
        let facts = HostFacts::default();
        check(&failed("cycles", libc::E2BIG), &facts, &["Linux 6.1"]);
        check(&failed("cycles", libc::ENOSYS), &facts, &["CONFIG_PERF_EVENTS"]);
        check(&failed("cycles", libc::EINTR), &facts, &["Interrupted", "dmesg"]);
    }
}
