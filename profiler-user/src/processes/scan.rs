//! What `/proc` shows: mappings of processes that existed before the recording, and who descends from whom.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use procfs::process::{Process, all_processes};

use super::directory;
use crate::kernel::{Mapped, MappedFile};
use crate::types::{FileOffset, Tgid, Tid, UserAddress};

/// Executable mappings of a process; none when it is gone or unreadable.
#[must_use]
pub fn mappings(tgid: Tgid) -> Vec<Mapped> {
    let maps = fs::read(directory::of(tgid).join("maps")).unwrap_or_default();
    maps.split(|&byte| byte == b'\n').filter_map(executable_mapping).collect()
}

/// The executable mapping of a process that holds this address now.
#[must_use]
pub fn mapping_at(tgid: Tgid, address: UserAddress) -> Option<Mapped> {
    mappings(tgid).into_iter().find(|mapped| address.0.wrapping_sub(mapped.start.0) < mapped.len)
}

/// These processes and all that descend from them now.
#[must_use]
pub fn descendants(of: &[Tgid]) -> HashSet<Tgid> {
    let mut children: HashMap<Tgid, Vec<Tgid>> = HashMap::new();
    for stat in all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok()) {
        children.entry(Tgid(stat.ppid.cast_unsigned())).or_default().push(Tgid(stat.pid.cast_unsigned()));
    }
    let mut family: HashSet<Tgid> = of.iter().copied().collect();
    let mut unvisited = of.to_vec();
    while let Some(parent) = unvisited.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            if family.insert(child) {
                unvisited.push(child);
            }
        }
    }
    family
}

/// The process that is told when this one ends; `None` when it is gone.
#[must_use]
pub(super) fn parent(tgid: Tgid) -> Option<Tgid> {
    let stat = Process::new(tgid.0.cast_signed()).ok()?.stat().ok()?;
    Some(Tgid(stat.ppid.cast_unsigned()))
}

/// How long ago a process began, to a hundredth of a second; `None` when it is gone.
#[must_use]
pub(super) fn age(tgid: Tgid) -> Option<Duration> {
    let stat = Process::new(tgid.0.cast_signed()).ok()?.stat().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    let began = Duration::from_millis(stat.starttime.checked_mul(1000)?.checked_div(ticks)?);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    Some(now.saturating_sub(began))
}

/// All processes of the machine.
#[must_use]
pub fn everyone() -> Vec<Tgid> {
    all_processes().into_iter().flatten().flatten().map(|process| Tgid(process.pid.cast_unsigned())).collect()
}

/// The process of a thread; `None` when there is no such thread.
#[must_use]
pub fn process_of_thread(tid: Tid) -> Option<Tgid> {
    let status = Process::new(tid.0.cast_signed()).ok()?.status().ok()?;
    Some(Tgid(status.tgid.cast_unsigned()))
}

/// One line of `/proc/PID/maps` (`proc_pid_maps(5)`), taken as bytes: a path is not always text.
fn executable_mapping(line: &[u8]) -> Option<Mapped> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after.trim_ascii_start();
        std::str::from_utf8(field).ok()
    };
    let (range, permissions, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    if permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let (major, minor) = device.split_once(':')?;
    let device =
        rustix::fs::makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode: u64 = inode.parse().ok()?;
    Some(Mapped {
        start: UserAddress(start),
        len: end.checked_sub(start)?,
        file_offset: FileOffset(hex(offset)?),
        path: rest.to_vec(),
        file: (inode != 0).then_some(MappedFile::Inode { device, inode }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_lines_are_taken_whole() {
        let line = b"7f12a000-7f12c000 r-xp 00026000 fe:00 1234                       /usr/lib/a b\xff.so";
        let mapped = executable_mapping(line).unwrap();
        assert_eq!((mapped.start.0, mapped.len, mapped.file_offset.0), (0x7f12_a000, 0x2000, 0x26000));
        assert_eq!(mapped.path, b"/usr/lib/a b\xff.so");
        assert_eq!(
            mapped.file,
            Some(MappedFile::Inode { device: rustix::fs::makedev(0xfe, 0), inode: 1234 })
        );
    }

    #[test]
    fn memory_without_a_file_has_no_identity() {
        let mapped = executable_mapping(b"7f12a000-7f12c000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!((mapped.path.len(), mapped.file), (0, None));
        assert_eq!(executable_mapping(b"7f12a000-7f12c000 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(executable_mapping(b""), None);
    }

    #[test]
    fn this_process_and_its_children_are_found() {
        let this = Tgid(std::process::id());
        assert!(mappings(this).iter().any(|mapped| mapped.path == b"[vdso]"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(descendants(&[this]).contains(&Tgid(child.id())));
        assert!(everyone().contains(&Tgid(child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_has_just_begun_is_young() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (young, old) = (age(Tgid(child.id())).unwrap(), age(Tgid(1)).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(young < Duration::from_secs(60) && old > young, "{young:?} {old:?}");
    }

    #[test]
    fn threads_know_their_process() {
        let tid = Tid(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        assert_eq!(process_of_thread(tid), Some(Tgid(std::process::id())));
        assert_eq!(process_of_thread(Tid(u32::MAX >> 1)), None);
    }
}
