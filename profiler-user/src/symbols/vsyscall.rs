//! The page of old system calls, at one address in all x86_64 processes. Those that call it trap, and the kernel answers.

use crate::types::{FileOffset, KernelAddress};

/// Name of its object, as `/proc/PID/maps` has it.
pub(super) const VSYSCALL: &str = "[vsyscall]";

/// The function at this place in the page (`arch/x86/entry/vsyscall/vsyscall_emu_64.S`).
pub(super) fn function(offset: FileOffset) -> Option<&'static str> {
    match offset.0 & !0x3ff {
        0 => Some("gettimeofday"),
        0x400 => Some("time"),
        0x800 => Some("getcpu"),
        _ => None,
    }
}

/// The place in the page (`VSYSCALL_ADDR` of `arch/x86/include/uapi/asm/vsyscall.h`) of a frame of a kernel stack. The kernel counts the
/// function that trapped among its own frames; the trap is at its first byte, and the address of a caller is one less.
pub(super) fn offset(caller: KernelAddress) -> Option<FileOffset> {
    let offset = caller.0.checked_sub(0xffff_ffff_ff5f_ffff).filter(|&offset| offset < 0x1000)?;
    cfg!(target_arch = "x86_64").then_some(FileOffset(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_lie_at_fixed_places() {
        for (offset, name) in [(0, "gettimeofday"), (0x407, "time"), (0x800, "getcpu")] {
            assert_eq!(function(FileOffset(offset)), Some(name));
        }
        assert_eq!(function(FileOffset(0xc00)), None);
    }
}
