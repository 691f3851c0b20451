//! The cgroup of each process, as it was when the process began its program.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use super::directory;
use crate::kernel::SidebandRecord;
use crate::types::Tgid;

/// Paths in the version 2 hierarchy, as bpfprof sees it.
#[derive(Debug, Default)]
pub struct Cgroups {
    by_process: HashMap<Tgid, Arc<str>>,
}

impl Cgroups {
    /// Looks at a process that lives. What cannot be read leaves what is known.
    pub fn look(&mut self, tgid: Tgid) {
        let text = fs::read_to_string(directory::of(tgid).join("cgroup")).unwrap_or_default();
        if let Some(path) = version_2(&text) {
            self.by_process.insert(tgid, path.into());
        }
    }

    /// Takes over a record while its process may still live: a child begins in the cgroup of its parent, and is moved, if at all, before it
    /// executes its program.
    pub fn follow(&mut self, record: &SidebandRecord) {
        match *record {
            SidebandRecord::Forked { parent, child } => {
                let inherited = self.of(parent);
                if !inherited.is_empty() {
                    self.by_process.entry(child).or_insert(inherited);
                }
            }
            // Of those that descend from no process looked at nobody will ask.
            SidebandRecord::Executed { tgid } if self.by_process.contains_key(&tgid) => self.look(tgid),
            SidebandRecord::Executed { .. }
            | SidebandRecord::Mapped { .. }
            | SidebandRecord::Exited { .. } => {}
        }
    }

    /// The cgroup of a process; empty where it is not known.
    #[must_use]
    pub fn of(&self, tgid: Tgid) -> Arc<str> {
        self.by_process.get(&tgid).cloned().unwrap_or_default()
    }

    /// Drops all processes but these.
    pub fn retain(&mut self, is_kept: impl Fn(Tgid) -> bool) {
        self.by_process.retain(|&tgid, _| is_kept(tgid));
    }
}

/// The path in the line of the version 2 hierarchy, which has the number 0 and no controllers (`cgroups(7)`).
fn version_2(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_begin_where_their_parents_are() {
        let mut cgroups = Cgroups::default();
        let this = Tgid(std::process::id());
        cgroups.look(this);
        let own = cgroups.of(this);
        assert!(own.starts_with('/'), "{own}");
        // No process has such an id.
        let (child, stranger) = (Tgid(1 << 30), Tgid((1 << 30) + 1));
        cgroups.follow(&SidebandRecord::Forked { parent: this, child });
        cgroups.follow(&SidebandRecord::Executed { tgid: child });
        assert_eq!((cgroups.of(child), cgroups.of(stranger)), (own, "".into()));
        cgroups.retain(|tgid| tgid == this);
        assert_eq!(cgroups.of(child), "".into());
    }

    #[test]
    fn the_line_of_version_2_is_told_from_the_others() {
        assert_eq!(version_2("9:memory:/x\n0::/system.slice/a.service\n"), Some("/system.slice/a.service"));
        assert_eq!(version_2("1:cpu:/\n"), None);
    }
}
