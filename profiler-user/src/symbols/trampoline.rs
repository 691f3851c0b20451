//! The code that a signal handler returns to. C libraries keep it without a symbol, or with one that begins behind the address that is looked
//! up: a caller's is one less than where it goes on, and handlers are called by the kernel.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::types::FileOffset;

/// Its instructions, and what the C library calls it: the kernel's `SA_RESTORER` (x86_64), and what the kernel's virtual object has
/// (aarch64). Debuggers know it by the same bytes.
const KNOWN: [(&[u8], &str); 2] = [
    // mov $15, %rax; syscall
    (&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], "__restore_rt"),
    // mov x8, #139; svc #0
    (&[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4], "__kernel_rt_sigreturn"),
];

/// The name of the trampoline that this place of a file is in, right before or right behind.
pub(super) fn name(file: &File, FileOffset(offset): FileOffset) -> Option<&'static str> {
    /// Of the known ones, in bytes.
    const LONGEST: usize = 9;
    let begins = offset.saturating_sub(LONGEST as u64);
    let mut bytes = [0; 2 * LONGEST + 1];
    let len = file.read_at(&mut bytes, begins).ok()?;
    let is_in = |code: &[u8]| {
        let places = (begins..).zip(bytes[..len].windows(code.len())).filter(|(_, found)| *found == code);
        // Right before it is the caller's address, right behind it the one that its system call would return to.
        places.into_iter().any(|(start, _)| (start..=start + code.len() as u64 + 1).contains(&(offset + 1)))
    };
    KNOWN.into_iter().find(|(code, _)| is_in(code)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trampoline_is_known_from_the_byte_before_it_on() {
        for (code, expected) in KNOWN {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&[&[0x90; 32][..], code, &[0x90; 32]].concat(), 0).unwrap();
            let end = 32 + code.len() as u64;
            for (offset, known) in
                [(30, false), (31, true), (32, true), (end, true), (end + 1, false), (900, false)]
            {
                assert_eq!(name(&file, FileOffset(offset)), known.then_some(expected), "{offset}");
            }
        }
    }
}
