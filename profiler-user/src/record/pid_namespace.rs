//! Whether the process ids that bpfprof sees are those of the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use anyhow::bail;

/// Inode of the initial pid namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL: u64 = 0xEFFF_FFFC;

/// Fails in a pid namespace of its own: samples carry the ids of the initial one, so they would be charged to other processes.
pub(super) fn check() -> anyhow::Result<()> {
    match fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()) {
        Ok(inode) if inode != INITIAL => bail!(
            "bpfprof runs in a pid namespace of its own, where process ids are not those of the samples: run it on the host, \
             or in a container that shares the host's (docker run --pid=host), and give it the process ids that are seen there"
        ),
        // Without /proc nothing is known, and much else will fail with its own reason.
        _ => Ok(()),
    }
}
