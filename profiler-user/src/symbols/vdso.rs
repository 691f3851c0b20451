//! The kernel's virtual object. It is the same image in every 64-bit process, so ours serves for all.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::processes::mappings;
use crate::types::Tgid;

/// A copy of it in a file of its own; `None` when this process has none (`vdso=0`).
#[must_use]
pub fn image() -> Option<File> {
    let mapped = mappings(Tgid(std::process::id())).into_iter().find(|mapped| mapped.path == b"[vdso]")?;
    let mut bytes = vec![0; usize::try_from(mapped.len).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, mapped.start.0).ok()?;
    let mut file = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(&bytes).ok()?;
    Some(file)
}
