//! The kernel side: loading the BPF programs, arming the events, draining the tables, reading side-band records.
//!
//! Only this module and [`events`](crate::events) open perf file descriptors, and only this one talks to aya.

mod accounting;
mod armed;
mod bpf_log;
mod btf;
mod error;
mod idle;
mod link;
mod pid_namespace;
mod programs;
mod row_chunks;
mod sampler;
mod sideband;
mod tables;
mod unwind_maps;
mod words;

pub use accounting::{Accounting, Amount, CounterAccounting, Lost};
pub use error::KernelError;
pub use pid_namespace::is_own as in_own_pid_namespace;
pub use programs::{Filter, ProgramSize, Target, Walk};
pub use sampler::{DRAINS_PER_SECOND, SampledEvent, Sampler, SamplerOptions};
pub use sideband::{BuildId, Mapped, MappedFile, Sideband, SidebandRecord};
pub use tables::{RawSample, wait_for_running_programs};
pub use unwind_maps::{Placement, UnwindMaps};
