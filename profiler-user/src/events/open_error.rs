//! Why an event could not be opened: what was asked, and the kernel's answer.

use super::advice::Advice;
use super::cpus::CpuId;
use super::precise::Precise;
use super::rate::Rate;
use super::spec::EventSpec;
use std::{fmt, io};

/// Why an event could not be opened on a CPU: what was asked, and the kernel's answer.
///
/// [`Refusal`](super::Refusal) makes a cause and a remedy of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {purpose} `{event}` on CPU {cpu}: {failure}")]
pub struct OpenError {
    /// The event.
    pub event: EventSpec,
    /// The CPU.
    pub cpu: CpuId,
    /// What it was wanted for.
    pub purpose: Purpose,
    /// What failed.
    pub failure: Failure,
}

/// What an event is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be sampled.
    Sample {
        /// The rate that is asked for.
        rate: Rate,
        /// The precise level that is asked for.
        precise: Precise,
    },
    /// To be counted only.
    Count,
}

/// A step of opening an event that failed, and the kernel's errno as it is; `ENODEV` when the CPU is offline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This machine has no such PMU, term or tracepoint.
    Unknown {
        /// Why.
        cause: String,
        /// What to do instead.
        remedy: String,
    },
    /// perf_event_open(2).
    Open {
        /// The kernel's answer.
        errno: i32,
    },
    /// mmap(2) of the ring for notices.
    MapRing {
        /// The kernel's answer.
        errno: i32,
    },
}

impl OpenError {
    /// The kernel's errno.
    pub fn errno(&self) -> i32 {
        self.failure.errno()
    }
}

impl Purpose {
    /// The rate that is asked for.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::Sample { rate, .. } => Some(rate),
            Self::Count => None,
        }
    }

    /// The precise level that is asked for; what is only counted has no address that could skid.
    pub fn precise(self) -> Precise {
        match self {
            Self::Sample { precise, .. } => precise,
            Self::Count => Precise::ARBITRARY_SKID,
        }
    }
}

impl Failure {
    /// The kernel's errno; `ENOENT` for what it need not be asked.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Unknown { .. } => libc::ENOENT,
            Self::Open { errno } | Self::MapRing { errno } => *errno,
        }
    }
}

impl From<Advice> for Failure {
    fn from(Advice { cause, remedy }: Advice) -> Self {
        Self::Unknown { cause, remedy }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sample { .. } => "sample",
            Self::Count => "count",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = io::Error::from_raw_os_error(self.errno());
        match self {
            Self::Unknown { cause, .. } => f.write_str(cause),
            Self::Open { .. } => write!(f, "perf_event_open: {answer}"),
            Self::MapRing { .. } => write!(f, "mmap of its ring: {answer}"),
        }
    }
}
