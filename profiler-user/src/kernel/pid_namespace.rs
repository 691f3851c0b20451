//! Whether the process ids that bpfprof sees are those of the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Inode of the initial pid namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL: u64 = 0xEFFF_FFFC;

/// Whether this process is in a pid namespace other than the initial one: then all ids, given and shown, are those of that namespace.
#[must_use]
pub fn is_own() -> bool {
    fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() != INITIAL)
}
