//! What can go wrong on the kernel side, in words for the user.

use std::io;

use crate::events::{Refusal, cpus::CpuListError};

/// Why sampling could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A sampling event was refused.
    #[error(transparent)]
    Event(#[from] Refusal),
    /// The kernel's list of CPUs cannot be read.
    #[error(transparent)]
    Cpus(#[from] CpuListError),
    /// The kernel describes its own types nowhere.
    #[error(
        "cannot read the kernel's type information ({path}): {cause}; bpfprof needs a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions from 2022 on ship it"
    )]
    Btf {
        /// The file.
        path: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The BPF object was refused by the kernel or by aya.
    #[error("the kernel refused bpfprof's BPF programs: {cause}")]
    Load {
        /// The first line of the refusal, with its remedy where there is one.
        cause: String,
    },
    /// The object in the binary is not the one this code was written for.
    #[error("bpfprof's BPF object has no {0}; rebuild it with `cargo xtask build-ebpf`")]
    Object(&'static str),
    /// A system call failed for a reason that is no matter of permission.
    #[error("{call}: {error}")]
    System {
        /// What was tried.
        call: &'static str,
        /// The kernel's answer.
        #[source]
        error: io::Error,
    },
    /// No CPU could be sampled.
    #[error("none of the CPUs asked for is online; see /sys/devices/system/cpu/online")]
    NoCpu,
}

impl KernelError {
    /// Wraps the answer to a system call, for `map_err`.
    pub(super) fn system(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { call, error }
    }
}
