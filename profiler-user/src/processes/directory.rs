//! The directory under `/proc` that shows a process.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::types::Tgid;

/// The directory that shows the memory, the root and the cgroup of a process.
///
/// It is named after the first thread. When that has ended and others go on, it shows nothing, but the directories of the others do: each
/// thread has one, which no listing shows (`proc_pid(5)`).
pub(super) fn of(tgid: Tgid) -> PathBuf {
    let named_after = |id: &str| PathBuf::from(format!("/proc/{id}"));
    let first = named_after(&tgid.to_string());
    if has_memory(&first) {
        return first;
    }
    let threads = fs::read_dir(first.join("task")).into_iter().flatten().flatten();
    let others = threads.filter_map(|thread| Some(named_after(thread.file_name().to_str()?)));
    others.into_iter().find(|other| has_memory(other)).unwrap_or(first)
}

/// Whether a thread has not ended: then it has a program. What may not be seen is taken to have one.
fn has_memory(directory: &std::path::Path) -> bool {
    !matches!(fs::read_link(directory.join("exe")), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_lives_is_shown_by_its_first_thread() {
        let this = std::process::id();
        assert_eq!(of(Tgid(this)), PathBuf::from(format!("/proc/{this}")));
        // No process has such an id.
        assert_eq!(of(Tgid(1 << 30)), PathBuf::from("/proc/1073741824"));
    }
}
