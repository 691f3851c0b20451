//! Links that aya does not make: to a perf event opened elsewhere, with a cookie; and an iterator that is run again and again.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::types::Tgid;
use aya_obj::generated::bpf_attach_type::{BPF_PERF_EVENT, BPF_TRACE_ITER};
use aya_obj::generated::bpf_attr;
use aya_obj::generated::bpf_cmd::{
    self, BPF_ITER_CREATE, BPF_LINK_CREATE, BPF_MAP_UPDATE_ELEM, BPF_PROG_TEST_RUN,
};
use aya_obj::generated::{bpf_attr__bindgen_ty_2, bpf_attr__bindgen_ty_2__bindgen_ty_1};

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
        let mut attr = no_attributes();
        attr.link_create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
        attr.link_create.__bindgen_anon_2.target_fd = event.as_fd().as_raw_fd().cast_unsigned();
        attr.link_create.attach_type = BPF_PERF_EVENT as u32;
        attr.link_create.__bindgen_anon_3.perf_event.bpf_cookie = cookie;
        Ok(Self { _fd: bpf(BPF_LINK_CREATE, &attr)? })
    }
}

/// A program that runs for every mapping of one process or of all.
#[derive(Debug)]
pub(super) struct MappingIterator {
    link: OwnedFd,
}

impl MappingIterator {
    /// Binds an iterator program, for one process or for all. Minimum kernel: 5.12 (`task_vma`), 6.1 for one process.
    pub(super) fn create(program: BorrowedFd<'_>, of: Option<Tgid>) -> io::Result<Self> {
        // `union bpf_iter_link_info`: thread id, process id, descriptor of a process.
        let task = [0, of.map_or(0, |tgid| tgid.0), 0, 0_u32];
        let mut attr = no_attributes();
        attr.link_create.__bindgen_anon_1.prog_fd = program.as_raw_fd().cast_unsigned();
        if of.is_some() {
            attr.link_create.__bindgen_anon_3.__bindgen_anon_1.iter_info = ptr::from_ref(&task) as u64;
            attr.link_create.__bindgen_anon_3.__bindgen_anon_1.iter_info_len = size_of_val(&task) as u32;
        }
        attr.link_create.attach_type = BPF_TRACE_ITER as u32;
        Ok(Self { link: bpf(BPF_LINK_CREATE, &attr)? })
    }

    /// Runs the program.
    pub(super) fn run(&self) -> io::Result<()> {
        let mut attr = no_attributes();
        attr.iter_create.link_fd = self.link.as_raw_fd().cast_unsigned();
        let mut iteration = bpf(BPF_ITER_CREATE, &attr).map(File::from)?;
        // Reading is what runs it; it writes nothing.
        io::copy(&mut iteration, &mut io::sink()).map(drop)
    }
}

/// Puts an event into a perf event array, where programs of its CPU can read it. It leaves when the map's descriptor is closed.
pub(super) fn set_event(map: BorrowedFd<'_>, index: u32, event: impl AsFd) -> io::Result<()> {
    let value = event.as_fd().as_raw_fd();
    let mut attr = no_attributes();
    let element = bpf_attr__bindgen_ty_2 {
        map_fd: map.as_raw_fd().cast_unsigned(),
        key: ptr::from_ref(&index) as u64,
        __bindgen_anon_1: bpf_attr__bindgen_ty_2__bindgen_ty_1 { value: ptr::from_ref(&value) as u64 },
        flags: 0,
    };
    attr.__bindgen_anon_2 = element;
    call(BPF_MAP_UPDATE_ELEM, &attr).map(drop)
}

/// Runs a raw tracepoint program now, in this process. Minimum kernel: 5.10.
pub(super) fn run_once(program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = no_attributes();
    attr.test.prog_fd = program.as_raw_fd().cast_unsigned();
    call(BPF_PROG_TEST_RUN, &attr).map(drop)
}

fn no_attributes() -> bpf_attr {
    // SAFETY: all fields of the union are plain numbers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// A `bpf(2)` command that gives a descriptor.
fn bpf(command: bpf_cmd, attr: &bpf_attr) -> io::Result<OwnedFd> {
    let fd = call(command, attr)?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A `bpf(2)` command.
fn call(command: bpf_cmd, attr: &bpf_attr) -> io::Result<i32> {
    // SAFETY: the attribute outlives the call and its size is given.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attr), size_of::<bpf_attr>()) };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
