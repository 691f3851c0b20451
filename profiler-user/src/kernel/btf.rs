//! Offsets of kernel structure members, from the kernel's own type information.
//!
//! Rust's BPF target emits no relocations against kernel types, so userspace resolves the few offsets that are needed.

use std::fs;

use btfparse::{Error, ErrorKind, Offset, Readable, Result as BtfResult, TypeInformation};
use profiler_common::config::{MappingOffsets, TaskOffsets};

use super::KernelError;

/// The program counter's name in `struct pt_regs`.
#[cfg(target_arch = "x86_64")]
const SAVED_PC: &str = "ip";
#[cfg(target_arch = "aarch64")]
const SAVED_PC: &str = "pc";

/// Where a kernel with BTF shows it (since 5.4).
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Offsets that the BPF programs need.
pub(super) struct Offsets {
    /// In the structures of tasks.
    pub task: TaskOffsets,
    /// In the structures of mappings.
    pub mapping: MappingOffsets,
}

/// Reads them from the running kernel.
pub(super) fn offsets() -> Result<Offsets, KernelError> {
    let btf = fs::read(VMLINUX).map_err(|error| unreadable(error.to_string()))?;
    let types = TypeInformation::new(&Bytes(btf)).map_err(|error| unreadable(format!("{error:?}")))?;
    let find = |structure: &str, member: &str| match types.offset_of(types.id_of(structure)?, member) {
        Ok((_, Offset::ByteOffset(offset))) => Some(offset),
        _ => None,
    };
    let offset = |structure: &str, member: &str| {
        find(structure, member).ok_or_else(|| unreadable(format!("no {structure}.{member} in it")))
    };
    let task = TaskOffsets {
        mm: offset("task_struct", "mm")?,
        pid: offset("task_struct", "pid")?,
        tgid: offset("task_struct", "tgid")?,
        self_exec_id: offset("task_struct", "self_exec_id")?,
        signal: offset("task_struct", "signal")?,
        signal_live: offset("signal_struct", "live")?,
        // An array of pointers by `enum pid_type`, in which the thread group is the second since 4.19.
        signal_tgid: offset("signal_struct", "pids")? + 8,
        thread_pid: offset("task_struct", "thread_pid")?,
        pid_level: offset("pid", "level")?,
        pid_numbers: offset("pid", "numbers")?,
        saved_pc: offset("pt_regs", SAVED_PC)?,
    };
    // Names since 6.11, since 6.7, and before.
    let modified = [
        ("i_mtime_sec", "i_mtime_nsec"),
        ("__i_mtime.tv_sec", "__i_mtime.tv_nsec"),
        ("i_mtime.tv_sec", "i_mtime.tv_nsec"),
    ];
    let (inode_modified, inode_modified_nanos) = modified
        .into_iter()
        .find_map(|(seconds, nanos)| Some((find("inode", seconds)?, find("inode", nanos)?)))
        .ok_or_else(|| unreadable("no time of modification in inode".into()))?;
    let mapping = MappingOffsets {
        start: offset("vm_area_struct", "vm_start")?,
        end: offset("vm_area_struct", "vm_end")?,
        file_page: offset("vm_area_struct", "vm_pgoff")?,
        flags: offset("vm_area_struct", "vm_flags")?,
        file: offset("vm_area_struct", "vm_file")?,
        inode: offset("file", "f_inode")?,
        inode_number: offset("inode", "i_ino")?,
        inode_size: offset("inode", "i_size")?,
        inode_modified,
        inode_modified_nanos,
        super_block: offset("inode", "i_sb")?,
        device: offset("super_block", "s_dev")?,
        vdso: offset("mm_struct", "context.vdso")?,
        start_code: offset("mm_struct", "start_code")?,
        area_length: offset("vm_unmapped_area_info", "length")?,
    };
    Ok(Offsets { task, mapping })
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
