//! What the kernel answers when an event is opened.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Context as _;

use crate::events::{
    CpuId, EventSpec, HostFacts, Precise, Refusal, cpus, find_counting, find_precise, open_for_this_thread,
    trial_cpus,
};

/// Where events are tried, and the facts that explain a refusal.
pub(super) struct Host {
    cpus: BTreeSet<CpuId>,
    facts: HostFacts,
}

/// What can be done with an event here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// It can be sampled, at this precise level.
    Sampling { precise: Precise },
    /// It can be counted, and not sampled.
    Counting { why: Why },
    /// It is there, as far as can be seen; to open it needs a privilege that this process does not have.
    WithPrivilege { why: Why },
    /// It cannot be opened.
    Not { why: Why },
}

/// A cause and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(super) struct Why {
    pub(super) cause: String,
    pub(super) remedy: String,
}

impl Host {
    /// The running machine.
    pub(super) fn read() -> anyhow::Result<Self> {
        let cpus = cpus::online()?;
        cpus.first().context("the kernel lists no CPU as online")?;
        Ok(Self { cpus, facts: HostFacts::read() })
    }

    /// Opens and closes the event on one CPU of each type.
    pub(super) fn ask(&self, spec: &EventSpec) -> Opens {
        match find_precise(spec, spec.default_rate(), &self.cpus, &self.facts) {
            Ok(precise) => Opens::Sampling { precise },
            Err(refusal) => self.beyond_sampling(spec, &refusal),
        }
    }

    /// What can be done with an event that cannot be sampled.
    fn beyond_sampling(&self, spec: &EventSpec, refusal: &Refusal) -> Opens {
        let why = Why::from(refusal);
        if find_counting(spec, &self.cpus, &self.facts).is_ok() {
            return Opens::Counting { why };
        }
        if !is_permission(refusal.errno()) {
            return Opens::Not { why };
        }
        let cpus = trial_cpus(spec, &self.cpus);
        let absent = cpus.iter().find_map(|&cpu| open_for_this_thread(spec, cpu).err());
        match absent.filter(|error| !is_permission(error.errno())) {
            Some(error) => Opens::Not { why: Why::from(&Refusal::new(&error, &self.facts)) },
            None => Opens::WithPrivilege { why },
        }
    }
}

fn is_permission(errno: i32) -> bool {
    matches!(errno, libc::EACCES | libc::EPERM)
}

impl Opens {
    /// The answer in one word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Sampling { .. } => "yes",
            Self::Counting { .. } => "count",
            Self::WithPrivilege { .. } => "root",
            Self::Not { .. } => "no",
        }
    }

    /// Why it cannot be sampled.
    pub(super) fn why(&self) -> Option<&Why> {
        match self {
            Self::Sampling { .. } => None,
            Self::Counting { why } | Self::WithPrivilege { why } | Self::Not { why } => Some(why),
        }
    }
}

impl From<&Refusal> for Why {
    fn from(refusal: &Refusal) -> Self {
        Self { cause: refusal.cause().to_owned(), remedy: refusal.remedy().to_owned() }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}
