//! Helpers of the end-to-end tests: running the built bpfprof, reading its outputs, and knowing the truth that they must tell.

pub mod bpf_objects;
pub mod c_program;
pub mod cgroup;
pub mod cpu_time;
pub mod folded;
pub mod host;
pub mod report;
pub mod restore;
pub mod run;
pub mod target;
pub mod truth;

pub use folded::Folded;
pub use report::Report;
pub use run::{Bpfprof, Finished, Running};
pub use target::Target;
