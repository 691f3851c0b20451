//! Whose objects get their unwind tables when they are mapped.

use super::target::ResolvedTarget;
use crate::processes::{Cgroups, Scope};
use crate::types::Tgid;

/// The processes whose objects get their tables when they are mapped, so that the first samples find them. Objects of all others, and those
/// mapped before the recording, get them when samples hit them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Eager {
    /// No process: stacks have no user side.
    Nobody,
    /// Every process that is known.
    Everybody,
    /// Those in this cgroup and in the cgroups below it.
    Cgroup(String),
}

impl Eager {
    pub(super) fn of(target: &ResolvedTarget, user_frames: bool) -> Self {
        match (&target.cgroup, target.scope) {
            _ if !user_frames => Self::Nobody,
            (Some(path), _) => Self::Cgroup(path.clone()),
            (None, Scope::All | Scope::Descendants) => Self::Everybody,
        }
    }

    /// Whether this process, of which the history is known, is one of them.
    pub(super) fn wants(&self, tgid: Tgid, cgroups: &Cgroups) -> bool {
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
            Self::Cgroup(path) => is_below(&cgroups.of(tgid), path),
        }
    }
}

fn is_below(cgroup: &str, path: &str) -> bool {
    cgroup
        .strip_prefix(path.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn a_cgroup_is_told_from_one_whose_name_begins_alike() {
        assert!(is_below("/a/b", "/a/b") && is_below("/a/b/c", "/a/b") && is_below("/a", "/"));
        assert!(!is_below("/a/bc", "/a/b") && !is_below("/a", "/a/b") && !is_below("", "/a"));
    }
}
