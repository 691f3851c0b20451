//! Tracepoints: `subsystem:name`, and their numbers in tracefs.

use super::advice::{Advice, advice};
use super::pmu::{is_name, names_in};
use super::system_root::below;
use crate::suggest;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// A tracepoint of the kernel as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    subsystem: String,
    name: String,
}

impl Tracepoint {
    /// Reads `subsystem:name`, and gives it and the text of its modifiers, if any; `None` when it has not this form.
    pub(super) fn parse(event: &str) -> Option<(Self, Option<&str>)> {
        let (subsystem, rest) = event.split_once(':')?;
        let (name, modifiers) = match rest.split_once(':') {
            Some((name, modifiers)) => (name, Some(modifiers)),
            None => (rest, None),
        };
        let tracepoint = Self { subsystem: subsystem.to_owned(), name: name.to_owned() };
        (is_name(subsystem) && is_name(name)).then_some((tracepoint, modifiers))
    }

    /// Every tracepoint of this kernel, by name.
    pub(super) fn all(root: &Path) -> Result<Vec<Self>, Advice> {
        let folder = events_folder(root)?;
        let mut all = Vec::new();
        for subsystem in names_in(&folder).map_err(|error| unreadable(&folder, &error))? {
            let names = names_in(&folder.join(&subsystem)).unwrap_or_default();
            let names =
                names.into_iter().filter(|name| folder.join(&subsystem).join(name).join("id").exists());
            all.extend(names.map(|name| Self { subsystem: subsystem.clone(), name }));
        }
        Ok(all)
    }

    /// Its number: `perf_event_attr.config` of an event of `PERF_TYPE_TRACEPOINT`.
    pub(super) fn id(&self, root: &Path) -> Result<u64, Advice> {
        let folder = events_folder(root)?;
        let file = folder.join(&self.subsystem).join(&self.name).join("id");
        match fs::read_to_string(&file) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| advice(format!("{} holds no number", file.display()), "use another event")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.unknown(&folder)),
            Err(error) => Err(unreadable(&file, &error)),
        }
    }

    fn unknown(&self, folder: &Path) -> Advice {
        let names = names_in(&folder.join(&self.subsystem)).unwrap_or_default();
        let nearest = suggest::nearest(&self.name, names);
        let remedy = if nearest.is_empty() {
            format!("see `bpfprof list '*{}*:*'`", self.subsystem)
        } else {
            let nearest: Vec<String> =
                nearest.into_iter().map(|name| format!("{}:{name}", self.subsystem)).collect();
            format!("use {}", nearest.join(" or "))
        };
        advice("this kernel has no such tracepoint", remedy)
    }
}

impl fmt::Display for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.subsystem, self.name)
    }
}

/// Where tracefs is mounted, the older place last (Documentation/trace/ftrace.rst).
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

fn events_folder(root: &Path) -> Result<PathBuf, Advice> {
    let mut cause =
        advice("tracefs is not mounted", "run `sudo mount -t tracefs tracefs /sys/kernel/tracing`");
    for place in TRACEFS {
        let folder = below(root, place).join("events");
        match fs::metadata(&folder) {
            Ok(_) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => cause = unreadable(&folder, &error),
        }
    }
    Err(cause)
}

fn unreadable(path: &Path, error: &io::Error) -> Advice {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return advice("tracefs is for root alone", "run it with sudo");
    }
    advice(format!("{} cannot be read: {error}", path.display()), "see whether tracefs is mounted")
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    fn tracepoint(text: &str) -> Tracepoint {
        Tracepoint::parse(text).unwrap().0
    }

    #[test]
    fn forms_of_perf() {
        let switch = tracepoint("sched:sched_switch");
        assert_eq!(switch.to_string(), "sched:sched_switch");
        assert_eq!(Tracepoint::parse("sched:sched_switch:u"), Some((switch, Some("u"))));
        for wrong in ["sched", "sched:", ":x", "a/b:c", "..:x", "sched:a b", "a:b/../c"] {
            assert_eq!(Tracepoint::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_number_is_found_at_either_place() {
        for place in TRACEFS {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), &format!("{place}/events/sched/sched_switch/id"), "314\n");
            write(root.path(), &format!("{place}/events/sched/enable"), "0\n");
            assert_eq!(tracepoint("sched:sched_switch").id(root.path()), Ok(314));
            assert_eq!(Tracepoint::all(root.path()), Ok(vec![tracepoint("sched:sched_switch")]));
            let refused = tracepoint("sched:sched_swich").id(root.path()).unwrap_err();
            assert_eq!(refused.remedy, "use sched:sched_switch");
            let refused = tracepoint("nosuch:thing").id(root.path()).unwrap_err();
            assert_eq!(refused.cause, "this kernel has no such tracepoint");
        }
    }

    #[test]
    fn without_tracefs_the_remedy_is_to_mount_it() {
        let root = tempfile::tempdir().unwrap();
        let refused = tracepoint("sched:sched_switch").id(root.path()).unwrap_err();
        assert_eq!(refused.cause, "tracefs is not mounted");
        assert!(refused.remedy.contains("mount -t tracefs"), "{}", refused.remedy);
        assert!(Tracepoint::all(root.path()).is_err());
    }
}
