//! Offsets of kernel structure members, from the kernel's own type information.
//!
//! Rust's BPF target emits no relocations against kernel types, so userspace resolves the few offsets that are needed.

use std::fs;

use btfparse::{Error, ErrorKind, Offset, Readable, Result as BtfResult, TypeInformation};
use profiler_common::config::TaskOffsets;

use super::KernelError;

/// Where a kernel with BTF shows it (since 5.4).
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Reads the offsets that the BPF programs need.
pub(super) fn task_offsets() -> Result<TaskOffsets, KernelError> {
    let btf = fs::read(VMLINUX).map_err(|error| unreadable(error.to_string()))?;
    let types = TypeInformation::new(&Bytes(btf)).map_err(|error| unreadable(format!("{error:?}")))?;
    let offset = |structure: &str, member: &str| {
        let missing = || unreadable(format!("no {structure}.{member} in it"));
        let id = types.id_of(structure).ok_or_else(missing)?;
        match types.offset_of(id, member) {
            Ok((_, Offset::ByteOffset(offset))) => Ok(offset),
            _ => Err(missing()),
        }
    };
    Ok(TaskOffsets {
        mm: offset("task_struct", "mm")?,
        pid: offset("task_struct", "pid")?,
        tgid: offset("task_struct", "tgid")?,
        self_exec_id: offset("task_struct", "self_exec_id")?,
        signal: offset("task_struct", "signal")?,
        signal_live: offset("signal_struct", "live")?,
    })
}

fn unreadable(cause: String) -> KernelError {
    KernelError::Btf { path: VMLINUX, cause }
}

struct Bytes(Vec<u8>);

impl Readable for Bytes {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> BtfResult<()> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let bytes = from
            .and_then(|bytes| bytes.get(..buffer.len()))
            .ok_or_else(|| Error::new(ErrorKind::EOF, "truncated"))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
