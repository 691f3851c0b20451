//! Attaching a loaded BPF program to a perf event, with a cookie.
//!
//! aya attaches perf events that it opened itself and gives them no cookie, so the link is made here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{bpf_attach_type::BPF_PERF_EVENT, bpf_attr, bpf_cmd::BPF_LINK_CREATE};

/// A program attached to a perf event. Dropping it detaches, as does the death of the process.
#[derive(Debug)]
pub(super) struct PerfLink {
    _fd: OwnedFd,
}

impl PerfLink {
    /// Attaches `program` to `event`; the program reads `cookie` by `bpf_get_attach_cookie`.
    ///
    /// Minimum kernel: 5.15 (`BPF_LINK_CREATE` for perf events).
    pub(super) fn create(program: BorrowedFd<'_>, event: impl AsFd, cookie: u64) -> io::Result<Self> {
        // SAFETY: all fields of the union are plain numbers, for which zero is valid.
        let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
        attr.link_create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
        attr.link_create.__bindgen_anon_2.target_fd = event.as_fd().as_raw_fd().cast_unsigned();
        attr.link_create.attach_type = BPF_PERF_EVENT as u32;
        attr.link_create.__bindgen_anon_3.perf_event.bpf_cookie = cookie;
        // SAFETY: the attribute outlives the call and its size is given.
        let fd =
            unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attr, size_of::<bpf_attr>()) };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave this descriptor to us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { _fd: fd })
    }
}
