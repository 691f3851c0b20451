//! What every opened event has in common: the attribute, and the call that opens it.

use super::advice::Advice;
use super::cpus::CpuId;
use super::encoding;
use super::open_error::Failure;
use super::spec::EventSpec;
use super::system_root::SYSTEM_ROOT;
use perf_event::{Builder, Clock, Counter, ReadFormat};
use std::io;
use std::path::Path;

/// The event on one CPU for all processes, disabled, neither sampled nor inherited: a program on the CPU could not read it else.
pub(super) fn builder(spec: &EventSpec, cpu: CpuId) -> Result<Builder<'static>, Advice> {
    let modifiers = spec.modifiers();
    let mut builder = encoding::builder(Path::new(SYSTEM_ROOT), spec, cpu)?;
    builder
        .any_pid()
        .one_cpu(cpu.0 as usize)
        .enabled(false)
        .inherit(false)
        .exclude_user(modifiers.exclude_user())
        .exclude_kernel(modifiers.exclude_kernel())
        .exclude_hv(modifiers.exclude_hypervisor())
        .exclude_guest(modifiers.exclude_guest())
        .exclude_host(modifiers.exclude_host())
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .clockid(Clock::MONOTONIC);
    Ok(builder)
}

/// Opens the event; where the kernel cannot tell guests apart and no modifier asks it to, with guests.
pub(super) fn open(builder: &mut Builder<'_>, spec: &EventSpec) -> Result<Counter, Failure> {
    let refused = match builder.build() {
        Ok(counter) => return Ok(counter),
        Err(error) => Failure::Open { errno: errno(&error) },
    };
    if refused.errno() != libc::EINVAL || spec.modifiers().names_guest_or_host() {
        return Err(refused);
    }
    builder.exclude_guest(false).build().map_err(|_| refused)
}

/// perf-event2 turns `E2BIG`, and only that, into an error without errno.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::E2BIG)
}
