//! What bpfprof may do, checked before it tries.

use std::os::unix::ffi::OsStrExt as _;

use anyhow::bail;
use caps::{CapSet, Capability};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Fails with the names of the capabilities that are missing.
pub(super) fn check() -> anyhow::Result<()> {
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
    let program = std::env::current_exe().unwrap_or_else(|_| "bpfprof".into());
    let program = String::from_utf8_lossy(program.as_os_str().as_bytes()).into_owned();
    bail!(
        "missing {}: run it with sudo, or allow it once with `sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep {program}`",
        missing.join(" and ")
    )
}

/// Lets as many objects be open as the hard limit allows: each is kept open so that it outlives its process.
pub(super) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it, fewer objects stay open.
    let _ = setrlimit(Resource::Nofile, limit);
}
