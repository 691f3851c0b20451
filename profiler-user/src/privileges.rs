//! What bpfprof may do, checked before it tries.

use anyhow::bail;
use caps::{CapSet, Capability, CapsHashSet};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Fails with the names of the capabilities that are missing.
pub(crate) fn check() -> anyhow::Result<()> {
    let held = caps::read(None, CapSet::Effective).unwrap_or_default();
    // The all-powerful capability of older kernels includes both.
    if held.contains(&Capability::CAP_SYS_ADMIN) {
        return Ok(());
    }
    let needed = [Capability::CAP_BPF, Capability::CAP_PERFMON];
    let missing: Vec<String> =
        needed.iter().filter(|cap| !held.contains(cap)).map(ToString::to_string).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "missing {}: run it with sudo, or let a group of users run it (`bpfprof help permissions` says how)",
        missing.join(" and ")
    )
}

/// What sampling still needs once everything is set up. `CAP_SYS_ADMIN` and the like are not among it.
const FOR_SAMPLING: [Capability; 11] = [
    // Tables for programs that begin, periods, CPUs that come online.
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_IPC_LOCK,
    // Files of other users' processes, through their mappings and roots.
    Capability::CAP_SYS_PTRACE,
    Capability::CAP_DAC_READ_SEARCH,
    Capability::CAP_CHECKPOINT_RESTORE,
    // Names of the kernel's functions.
    Capability::CAP_SYSLOG,
    // Outputs in folders of the user who called sudo, which become that user's.
    Capability::CAP_CHOWN,
    Capability::CAP_DAC_OVERRIDE,
    // Signals for the command, and being run in time.
    Capability::CAP_KILL,
    Capability::CAP_SYS_NICE,
];

/// Gives up, in this thread and those that it starts, what sampling does not need. A command that is started before keeps its own.
pub(crate) fn keep_for_sampling() {
    let wanted = CapsHashSet::from(FOR_SAMPLING);
    for set in [CapSet::Effective, CapSet::Permitted] {
        // Fewer are held by a program that was given some alone, and none is missing to who cannot give them up.
        if let Ok(held) = caps::read(None, set) {
            let kept = held.intersection(&wanted).copied().collect();
            let _ = caps::set(None, set, &kept);
        }
    }
}

/// Gives up all privileges that came with the file of the program and not with its user: saved profiles are read as the user.
pub(crate) fn drop_those_of_the_file() {
    if rustix::process::getuid().is_root() {
        return;
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        // Who has none has none to lose.
        let _ = caps::clear(None, set);
    }
}

/// Lets as many objects be open as the hard limit allows: each is kept open so that it outlives its process.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it, fewer objects stay open.
    let _ = setrlimit(Resource::Nofile, limit);
}
