//! Mappings of processes, by time.

use std::collections::HashMap;
use std::path::Path;

use super::address_space::{self, AddressSpace, Mapping};
use super::objects::{ObjectId, Objects};
use super::scan;
use crate::kernel::{Mapped, SidebandRecord};
use crate::types::{FileOffset, MonotonicTime, Tgid, UserAddress};

/// Which processes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every process of the machine.
    All,
    /// Those added by [`History::scan`], and all that descend from them.
    Descendants,
}

/// Where a user address lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// In an object.
    Object {
        /// The object.
        object: ObjectId,
        /// Place in its file.
        offset: FileOffset,
    },
    /// In memory of the process that belongs to no object: code made at run time.
    Anonymous,
    /// In no mapping that is known.
    Unknown,
}

/// The history of all processes in scope.
///
/// Records are applied in order of time. What ended before [`History::forget_before`] is dropped, so memory is bounded by the
/// processes alive and those that ended since the last drain.
pub struct History {
    scope: Scope,
    processes: HashMap<Tgid, Process>,
    /// The page of old system calls: every program has it, no record tells of it.
    vsyscall: Option<Mapped>,
}

#[derive(Default)]
struct Process {
    /// Programs it has run, oldest first.
    images: Vec<Image>,
    exited: Option<MonotonicTime>,
}

/// A program in a process, from exec to exec.
#[derive(Clone, Default)]
struct Image {
    since: MonotonicTime,
    /// Whether it began with an exec, and not with a fork or with this history.
    executed: bool,
    memory: AddressSpace,
}

impl History {
    /// A history that knows no process yet.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        let ours = scan::mappings(Tgid(std::process::id()));
        let vsyscall = ours.into_iter().find(|mapped| mapped.path == b"[vsyscall]");
        Self { scope, processes: HashMap::new(), vsyscall }
    }

    /// Which processes are remembered.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Takes a process as `/proc` shows it now. One that is gone or unreadable stays unknown.
    ///
    /// To be called after the side-band records have begun to flow: they correct what changes while it is read.
    pub fn scan(&mut self, tgid: Tgid, objects: &mut Objects) {
        let image = scanned(tgid, MonotonicTime(0), objects);
        self.processes.insert(tgid, Process { images: vec![image], exited: None });
    }

    /// Takes a process as `/proc` shows it now for all times from `time` on: records of it may be lost.
    pub fn rescan(&mut self, tgid: Tgid, time: MonotonicTime, objects: &mut Objects) {
        let image = scanned(tgid, time, objects);
        self.processes.entry(tgid).or_default().images.push(image);
    }

    /// Finds out which of the scanned processes share the memory of an ancestor: to be called after the last of them.
    pub fn join_sharers(&mut self) {
        let shared: Vec<(Tgid, AddressSpace)> =
            self.processes().filter_map(|tgid| Some((tgid, self.memory_of_ancestor(tgid)?))).collect();
        for (tgid, memory) in shared {
            if let Some(process) = self.processes.get_mut(&tgid) {
                process.image().memory = memory;
            }
        }
    }

    /// The memory of the furthest ancestor that a process shares it with; `None` if not even with its parent.
    fn memory_of_ancestor(&self, tgid: Tgid) -> Option<AddressSpace> {
        let parent = scan::parent(tgid)?;
        if !address_space::is_shared(parent, tgid) {
            return None;
        }
        let of_parent = || Some(self.processes.get(&parent)?.images.last()?.memory.clone());
        self.memory_of_ancestor(parent).or_else(of_parent)
    }

    /// The processes in which a mapping takes the place of one that is known: the one that maps it, and those that share its memory.
    #[must_use]
    pub fn replaced_in(&self, tgid: Tgid, mapped: &Mapped) -> Vec<Tgid> {
        let image = self.processes.get(&tgid).and_then(|process| process.images.last());
        let Some(Image { memory, .. }) = image.filter(|image| image.memory.is_covered_by(mapped)) else {
            return Vec::new();
        };
        if !memory.may_be_shared() {
            return vec![tgid];
        }
        let has_it = |process: &Process| process.images.last().is_some_and(|image| image.memory.is(memory));
        self.processes.iter().filter(|(_, process)| has_it(process)).map(|(&tgid, _)| tgid).collect()
    }

    /// All processes that are known.
    pub fn processes(&self) -> impl Iterator<Item = Tgid> {
        self.processes.keys().copied()
    }

    /// The objects of all mappings that can still be asked for, some more than once.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        let images = self.processes.values().flat_map(|process| &process.images);
        images.flat_map(|image| image.memory.objects())
    }

    /// The objects that a process has mapped now, some more than once.
    #[must_use]
    pub fn objects_of(&self, tgid: Tgid) -> Vec<ObjectId> {
        let image = self.processes.get(&tgid).and_then(|process| process.images.last());
        image.map(|image| image.memory.objects()).unwrap_or_default()
    }

    /// Applies the next record. Objects are opened at once, before their process can end.
    pub fn apply(&mut self, time: MonotonicTime, record: SidebandRecord, objects: &mut Objects) {
        match record {
            SidebandRecord::Mapped { tgid, mapped } => {
                if let Some(process) = self.process(tgid) {
                    let object = objects.find(tgid, &mapped);
                    process.image().memory.insert(time, &mapped, object);
                }
            }
            SidebandRecord::Executed { tgid } => {
                objects.jit_code_mut().executed(tgid, time);
                let memory = AddressSpace::default();
                if let Some(vsyscall) = &self.vsyscall {
                    memory.insert(time, vsyscall, objects.find(tgid, vsyscall));
                }
                if let Some(process) = self.process(tgid) {
                    process.images.push(Image { since: time, executed: true, memory });
                }
            }
            SidebandRecord::Forked { parent, child } => {
                if let Some(process) = self.processes.get_mut(&parent) {
                    let theirs = &process.image().memory;
                    let is_shared = address_space::is_shared(parent, child);
                    let memory = if is_shared { theirs.clone() } else { theirs.copy() };
                    let image = Image { since: time, executed: false, memory };
                    self.processes.insert(child, Process { images: vec![image], exited: None });
                    objects.jit_code_mut().forked(parent, child, time);
                }
            }
            SidebandRecord::Exited { tgid } => {
                if let Some(process) = self.processes.get_mut(&tgid) {
                    process.exited = Some(time);
                }
            }
        }
    }

    /// Where this address of the process lay at that time.
    #[must_use]
    pub fn locate(&self, tgid: Tgid, address: UserAddress, time: MonotonicTime) -> Location {
        let image = self.processes.get(&tgid).and_then(|process| process.image_at(time));
        match image.and_then(|image| image.memory.find(address.0, time)) {
            Some(Mapping { start, file_offset, object: Some(object), .. }) => {
                Location::Object { object, offset: FileOffset(address.0 - start + file_offset) }
            }
            Some(Mapping { object: None, .. }) => Location::Anonymous,
            None => Location::Unknown,
        }
    }

    /// Whether this process maps the object at that time. True for a process that is not known: nothing speaks against it.
    #[must_use]
    pub fn maps(&self, tgid: Tgid, object: ObjectId, time: MonotonicTime) -> bool {
        let image = self.processes.get(&tgid).and_then(|process| process.image_at(time));
        image.is_none_or(|image| image.memory.maps(object, time))
    }

    /// Whether this process has executed a program between the beginning of its history and that time.
    #[must_use]
    pub fn has_executed_before(&self, tgid: Tgid, time: MonotonicTime) -> bool {
        let image = self.processes.get(&tgid).and_then(|process| process.image_at(time));
        image.is_some_and(|image| image.executed)
    }

    /// Whether this process is known.
    #[must_use]
    pub fn knows(&self, tgid: Tgid) -> bool {
        self.processes.contains_key(&tgid)
    }

    /// Drops what ended before this time: no sample from before it will be looked up any more.
    pub fn forget_before(&mut self, time: MonotonicTime) {
        self.processes.retain(|tgid, process| {
            // The first thread may end while others go on.
            let gone = process.exited.is_some_and(|exited| exited < time)
                && !Path::new(&format!("/proc/{tgid}")).exists();
            if !gone {
                process.forget_before(time);
            }
            !gone
        });
    }

    fn process(&mut self, tgid: Tgid) -> Option<&mut Process> {
        match self.scope {
            Scope::All => Some(self.processes.entry(tgid).or_default()),
            Scope::Descendants => self.processes.get_mut(&tgid),
        }
    }
}

fn scanned(tgid: Tgid, since: MonotonicTime, objects: &mut Objects) -> Image {
    let memory = AddressSpace::default();
    for mapped in scan::mappings(tgid) {
        memory.insert(since, &mapped, objects.find(tgid, &mapped));
    }
    Image { since, executed: false, memory }
}

impl Process {
    /// The program that runs now.
    fn image(&mut self) -> &mut Image {
        if self.images.is_empty() {
            self.images.push(Image::default());
        }
        let last = self.images.len() - 1;
        &mut self.images[last]
    }

    /// The program at that time.
    fn image_at(&self, time: MonotonicTime) -> Option<&Image> {
        let later = self.images.partition_point(|image| image.since <= time);
        self.images[..later].last()
    }

    fn forget_before(&mut self, time: MonotonicTime) {
        let later = self.images.partition_point(|image| image.since <= time);
        self.images.drain(..later.saturating_sub(1));
        self.images.iter().for_each(|image| image.memory.forget_before(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Tgid = Tgid(100);
    const CHILD: Tgid = Tgid(101);

    /// A history of process 100, with objects named by their paths; no such file exists, so none is opened.
    struct Scene {
        history: History,
        objects: Objects,
    }

    impl Scene {
        fn new() -> Self {
            let mut history = History::new(Scope::Descendants);
            history.processes.insert(P, Process::default());
            Self { history, objects: Objects::default() }
        }

        fn map(&mut self, time: u64, tgid: Tgid, start: u64, len: u64, path: &str) {
            let mapped = Mapped {
                start: UserAddress(start),
                len,
                file_offset: FileOffset(0x1000),
                path: path.as_bytes().to_vec(),
                file: None,
            };
            self.apply(time, SidebandRecord::Mapped { tgid, mapped });
        }

        fn apply(&mut self, time: u64, record: SidebandRecord) {
            self.history.apply(MonotonicTime(time), record, &mut self.objects);
        }

        fn at(&self, time: u64, tgid: Tgid, address: u64) -> Option<(String, u64)> {
            match self.history.locate(tgid, UserAddress(address), MonotonicTime(time)) {
                Location::Object { object, offset } => {
                    Some((self.objects.get(object).name.to_string(), offset.0))
                }
                Location::Anonymous | Location::Unknown => None,
            }
        }
    }

    fn named(name: &str, offset: u64) -> Option<(String, u64)> {
        Some((name.to_string(), offset))
    }

    #[test]
    fn an_exec_separates_two_images_at_the_same_address() {
        let mut scene = Scene::new();
        scene.map(10, P, 0x40_0000, 0x1000, "/bin/nosuch-a");
        scene.apply(20, SidebandRecord::Executed { tgid: P });
        scene.map(21, P, 0x40_0000, 0x1000, "/bin/nosuch-b");
        assert_eq!(scene.at(15, P, 0x40_0010), named("nosuch-a", 0x1010));
        assert_eq!(scene.at(25, P, 0x40_0010), named("nosuch-b", 0x1010));
        assert_eq!(scene.at(20, P, 0x40_0010), None);
        assert_eq!(scene.at(25, P, 0x70_0000), None);
        scene.history.forget_before(MonotonicTime(22));
        assert_eq!(scene.at(25, P, 0x40_0010), named("nosuch-b", 0x1010));
        scene.apply(30, SidebandRecord::Executed { tgid: P });
        scene.history.forget_before(MonotonicTime(31));
        assert_eq!(scene.at(15, P, 0x40_0010), None);
    }

    #[test]
    fn a_library_replaced_at_its_address_is_told_apart_by_time() {
        let mut scene = Scene::new();
        scene.map(10, P, 0x1000, 0x3000, "/lib/nosuch-one.so");
        scene.map(20, P, 0x2000, 0x1000, "/lib/nosuch-two.so");
        assert_eq!(scene.at(15, P, 0x2010), named("nosuch-one.so", 0x2010));
        assert_eq!(scene.at(25, P, 0x2010), named("nosuch-two.so", 0x1010));
        assert_eq!(scene.at(25, P, 0x1010), named("nosuch-one.so", 0x1010));
        assert_eq!(scene.at(25, P, 0x3010), named("nosuch-one.so", 0x3010));
    }

    #[test]
    fn a_child_has_its_parents_mappings_from_the_fork_on() {
        let mut scene = Scene::new();
        scene.map(10, P, 0x1000, 0x1000, "/bin/nosuch-parent");
        scene.apply(20, SidebandRecord::Forked { parent: P, child: CHILD });
        scene.map(30, P, 0x1000, 0x1000, "/bin/nosuch-later");
        assert_eq!(scene.at(35, CHILD, 0x1000), named("nosuch-parent", 0x1000));
        assert_eq!(scene.at(35, P, 0x1000), named("nosuch-later", 0x1000));
        assert_eq!(scene.at(15, CHILD, 0x1000), None);
    }

    #[test]
    fn processes_out_of_scope_are_not_remembered() {
        let mut scene = Scene::new();
        scene.map(10, Tgid(7), 0x1000, 0x1000, "/bin/nosuch");
        scene.apply(20, SidebandRecord::Forked { parent: Tgid(7), child: Tgid(8) });
        assert!(!scene.history.knows(Tgid(7)) && !scene.history.knows(Tgid(8)));
    }

    #[test]
    fn an_ended_process_is_kept_until_its_samples_are_drained() {
        let mut scene = Scene::new();
        // No process can have this number.
        let gone = Tgid(u32::MAX);
        scene.apply(5, SidebandRecord::Forked { parent: P, child: gone });
        scene.map(10, gone, 0x1000, 0x1000, "/bin/nosuch");
        scene.apply(20, SidebandRecord::Exited { tgid: gone });
        scene.history.forget_before(MonotonicTime(20));
        assert!(scene.history.knows(gone));
        scene.history.forget_before(MonotonicTime(21));
        assert!(!scene.history.knows(gone));
    }

    #[test]
    fn a_rescan_holds_from_its_time_on() {
        let mut scene = Scene::new();
        let this = Tgid(std::process::id());
        scene.history.processes.insert(this, Process::default());
        scene.map(10, this, 0x1000, 0x1000, "/bin/nosuch");
        scene.history.rescan(this, MonotonicTime(20), &mut scene.objects);
        assert_eq!(scene.at(15, this, 0x1000), named("nosuch", 0x1000));
        let ours = scan::mappings(this);
        assert!(ours.iter().any(|mapped| scene.at(25, this, mapped.start.0).is_some()));
    }
}
