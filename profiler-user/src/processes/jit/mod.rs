//! Code that processes make at run time, and the names that they write for it.
//!
//! A map (`/tmp/perf-PID.map`) has no times. Its lines are read while samples are taken, so that a name holds from when it was seen until
//! another takes its memory. What has no name when it is sampled gets one at the end, as a map may be written then. A dump
//! (`jit-PID.dump`) has times, and is read at the end alone.

mod known;
mod lines;
mod names;
mod place;
mod runtime;
mod tail;

pub use lines::{MAX_LINE, entry};
pub use names::JitName;
pub use runtime::Runtime;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use known::Known;
use names::Names;
use place::{Folders, Writer};
use tail::{Room, Tail};

use super::scan;
use crate::types::{MonotonicTime, Tgid, UserAddress};

/// Processes with code of their own making that are remembered.
const MAX_PROCESSES: usize = 16_384;

/// Maps that are held open.
const MAX_OPEN: usize = 256;

/// Dumps of one process: its own, and those of its ancestors.
const MAX_DUMPS: usize = 8;

/// Bytes of maps that are read in a drain, and ranges that are kept of all of them. What comes after is read at the end.
const ROOM: Room = Room { bytes: 16 << 20, ranges: 4 << 20 };

/// What is known of code made at run time, noted while its processes live.
/// Bounded: what comes after the bounds has no names.
pub struct JitCode {
    processes: HashMap<Tgid, Process>,
    /// Names of forked processes that are not taken over yet.
    forks: HashMap<Tgid, Known>,
    folders: Folders,
    names: Names,
    /// Maps held open.
    open: usize,
    room: Room,
}

impl Default for JitCode {
    fn default() -> Self {
        let (folders, names) = (Folders::default(), Names::default());
        Self { processes: HashMap::new(), forks: HashMap::new(), folders, names, open: 0, room: ROOM }
    }
}

/// A process with code of its own making.
#[derive(Default)]
struct Process {
    runtime: Runtime,
    /// Where it writes its map; `None` until that is known.
    writer: Option<Writer>,
    tail: Tail,
    /// Names of the program that runs.
    known: Known,
    /// Those of the program before, and when it ended.
    before: Option<(MonotonicTime, Known)>,
    dumps: Vec<JitDump>,
    /// Whether its map was read since the last drain.
    is_fresh: bool,
    /// Whether a sample of the present drain lay in its code.
    is_sampled: bool,
}

/// A dump that a process has mapped to mark it, or that it has from the process it was forked from.
#[derive(Clone)]
pub struct JitDump {
    /// The file.
    pub file: Arc<File>,
    /// Until when its names hold: the time of the fork.
    pub until: Option<MonotonicTime>,
}

/// What is known of an address when it was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitFrame {
    /// Its name.
    Named(JitName),
    /// Nothing yet. The time is there where names come with times.
    Unnamed(Option<MonotonicTime>),
}

impl JitCode {
    /// Notes where this process writes its map, and opens it if it is there. To be called while the process lives, and again
    /// when it makes more code.
    pub(super) fn notice(&mut self, tgid: Tgid) {
        let Some(process) = admit(&mut self.processes, tgid) else { return };
        if process.writer.is_none() {
            process.writer = Writer::of(tgid, &mut self.folders).ok();
            process.runtime = Runtime::of(tgid);
        }
        hold(process, &mut self.open);
    }

    /// Notes a dump that a process has mapped: its own, or one that it has from the process it was forked from.
    pub(super) fn note_dump(&mut self, tgid: Tgid, file: &Arc<File>) {
        self.notice(tgid);
        let Some(process) = self.processes.get_mut(&tgid) else { return };
        // A header that is not written yet is the process's own: V8 marks the dump first.
        let writers = process.writer.as_ref().map(Writer::namespace_pid).zip(writer_of_dump(file));
        let is_own = writers.is_none_or(|(pid, writer)| pid == writer);
        let until = if is_own { None } else { scan::age(tgid).map(MonotonicTime::before) };
        process.add_dump(JitDump { file: Arc::clone(file), until });
    }

    /// Keeps the names that a process has when it forks: to be called as soon as the fork is known.
    pub(super) fn note_fork(&mut self, parent: Tgid, child: Tgid) {
        if self.forks.len() < MAX_PROCESSES && self.processes.contains_key(&parent) {
            self.read_again(parent);
            if let Some(parent) = self.processes.get(&parent) {
                self.forks.insert(child, parent.known.with_news());
            }
        }
    }

    /// A forked process has its parent's code, and the names that it had at that moment.
    pub(super) fn forked(&mut self, parent: Tgid, child: Tgid, time: MonotonicTime) {
        let noted = self.forks.remove(&child);
        let Some(theirs) = self.processes.get(&parent) else { return };
        let known = noted.unwrap_or_else(|| theirs.known.with_news());
        if known.is_empty() && theirs.dumps.is_empty() {
            return;
        }
        let until = |dump: &JitDump| JitDump { until: dump.until.or(Some(time)), ..dump.clone() };
        let (runtime, dumps) = (theirs.runtime, theirs.dumps.iter().map(until).collect::<Vec<_>>());
        let Some(process) = admit(&mut self.processes, child) else { return };
        (process.runtime, process.known) = (runtime, known);
        for dump in dumps {
            process.add_dump(dump);
        }
    }

    /// The code of a process is gone with its program. What was read of its map belongs to that. The runtime and the dumps may be those of the
    /// next already: mappings are looked at as they come, before the exec is applied.
    pub(super) fn executed(&mut self, tgid: Tgid, time: MonotonicTime) {
        let Some(process) = self.processes.get_mut(&tgid) else { return };
        self.room.ranges += process.known.own_ranges();
        process.before = Some((time, process.known.with_news()));
        process.known = Known::default();
    }

    /// What this address of a process is called, by what was seen before its sample was drained.
    pub fn find(&mut self, tgid: Tgid, address: UserAddress, time: MonotonicTime) -> JitFrame {
        let Some(process) = self.processes.get_mut(&tgid) else { return JitFrame::Unnamed(None) };
        if let Some((until, before)) = process.before.as_ref().filter(|(until, _)| time < *until) {
            return before.find(address).map_or(JitFrame::Unnamed(Some(*until)), JitFrame::Named);
        }
        if !process.dumps.is_empty() {
            return JitFrame::Unnamed(Some(time));
        }
        process.is_sampled = true;
        if let Some(name) = process.known.find(address) {
            return JitFrame::Named(name);
        }
        self.read_news(tgid);
        let name = self.processes.get(&tgid).and_then(|process| process.known.find_new(address));
        name.map_or(JitFrame::Unnamed(None), JitFrame::Named)
    }

    /// Ends a drain: names that were seen during it hold from now on.
    pub fn end_drain(&mut self) {
        let sampled = self.processes.iter().filter(|(_, process)| process.is_sampled);
        for tgid in sampled.map(|(&tgid, _)| tgid).collect::<Vec<_>>() {
            self.read_news(tgid);
        }
        self.room.bytes = ROOM.bytes;
        for process in self.processes.values_mut() {
            let before = process.known.own_ranges();
            process.known.take_news();
            self.room.ranges += before - process.known.own_ranges();
            (process.is_fresh, process.is_sampled) = (false, false);
        }
    }

    /// The text of a name.
    #[must_use]
    pub fn name(&self, name: JitName) -> &str {
        self.names.text(name)
    }

    /// What makes the code of this process.
    #[must_use]
    pub fn runtime(&self, tgid: Tgid) -> Runtime {
        self.processes.get(&tgid).map_or_else(Runtime::default, |process| process.runtime)
    }

    /// The dumps that name code of this process, its own first.
    #[must_use]
    pub fn dumps(&self, tgid: Tgid) -> Vec<JitDump> {
        self.processes.get(&tgid).map(|process| process.dumps.clone()).unwrap_or_default()
    }

    /// The map of a process: the file at its place now, since maps are also written at the end and put in the place of older ones (as
    /// perf-map-agent does); else the one that was there.
    ///
    /// # Errors
    ///
    /// When there is none, or it belongs neither to root nor to the process's user, is older than the process, or is no regular file.
    pub fn map(&self, tgid: Tgid) -> io::Result<Arc<File>> {
        let process = self.processes.get(&tgid).ok_or(io::ErrorKind::NotFound)?;
        process.writer.as_ref().ok_or(io::ErrorKind::NotFound)?.map()
    }

    /// Reads what a map has that was not seen, once in a drain.
    fn read_news(&mut self, tgid: Tgid) {
        if self.processes.get(&tgid).is_some_and(|process| !process.is_fresh) {
            self.read_again(tgid);
        }
    }

    fn read_again(&mut self, tgid: Tgid) {
        let Self { processes, names, open, room, .. } = self;
        let Some(process) = processes.get_mut(&tgid) else { return };
        process.is_fresh = true;
        hold(process, open);
        if let Some(map) = process.writer.as_ref().and_then(|writer| writer.map().ok()) {
            process.tail.read(&map, &mut process.known, names, room);
        }
    }
}

impl Process {
    fn add_dump(&mut self, dump: JitDump) {
        let is_known = self.dumps.iter().any(|known| is_one_file(&known.file, &dump.file));
        if !is_known && self.dumps.len() < MAX_DUMPS {
            self.dumps.push(dump);
        }
    }
}

/// Keeps the map of a process open once it is there.
fn hold(process: &mut Process, open: &mut usize) {
    if let Some(writer) = &mut process.writer
        && !writer.holds_map()
        && *open < MAX_OPEN
    {
        *open += usize::from(writer.hold());
    }
}

fn admit(processes: &mut HashMap<Tgid, Process>, tgid: Tgid) -> Option<&mut Process> {
    if processes.len() >= MAX_PROCESSES && !processes.contains_key(&tgid) {
        return None;
    }
    Some(processes.entry(tgid).or_default())
}

/// The id of the process that writes a dump, from its header.
fn writer_of_dump(file: &File) -> Option<u32> {
    let mut pid = [0; 4];
    file.read_exact_at(&mut pid, 20).ok()?;
    Some(u32::from_le_bytes(pid))
}

fn is_one_file(one: &Arc<File>, other: &Arc<File>) -> bool {
    let stamp = |file: &File| super::FileStamp::of(file).map(|stamp| (stamp.device, stamp.inode));
    Arc::ptr_eq(one, other) || stamp(one).is_some_and(|one| stamp(other) == Some(one))
}

/// Whether a file of this name is a dump (`jit-PID.dump`, `tools/perf/Documentation/jitdump-specification.txt` of the kernel).
pub(super) fn is_dump(path: &[u8]) -> bool {
    let name = super::short_name(path);
    let pid = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}
