//! Address spaces: what is mapped where, by time, in one process or in several that share their memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::objects::ObjectId;
use crate::kernel::Mapped;
use crate::types::{MonotonicTime, Tgid};

/// The memory of a process. Clones of it are the same memory, as `clone(2)` with `CLONE_VM` gives it: what one maps, the others have.
#[derive(Clone, Default)]
pub(super) struct AddressSpace {
    /// Inside: those of a fork are the same as its parent's until one of them maps something.
    mappings: Rc<RefCell<Rc<Mappings>>>,
}

/// Where something is mapped.
#[derive(Clone, Copy)]
pub(super) struct Mapping {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Place of the first byte in the file.
    pub file_offset: u64,
    /// `None` for memory without a file.
    pub object: Option<ObjectId>,
    since: MonotonicTime,
}

#[derive(Clone, Default)]
struct Mappings {
    /// By first address; they do not overlap.
    current: BTreeMap<u64, Mapping>,
    /// Replaced ones with the time at which they were, oldest first.
    past: Vec<(MonotonicTime, Mapping)>,
}

impl AddressSpace {
    /// Another one with the same mappings, as `fork(2)` gives it.
    pub(super) fn copy(&self) -> Self {
        let mappings = Rc::clone(&self.mappings.borrow());
        Self { mappings: Rc::new(RefCell::new(mappings)) }
    }

    /// Maps a range. What it covers belongs to the past from then on; what it leaves over stays.
    pub(super) fn insert(&self, time: MonotonicTime, mapped: &Mapped, object: Option<ObjectId>) {
        Rc::make_mut(&mut self.mappings.borrow_mut()).insert(time, mapped, object);
    }

    /// What held this address at that time.
    pub(super) fn find(&self, address: u64, time: MonotonicTime) -> Option<Mapping> {
        self.mappings.borrow().find(address, time).copied()
    }

    /// Whether the object was mapped at that time.
    pub(super) fn maps(&self, object: ObjectId, time: MonotonicTime) -> bool {
        self.mappings.borrow().all_at(time).any(|mapping| mapping.object == Some(object))
    }

    /// Whether a mapping would take the place of another.
    pub(super) fn is_covered_by(&self, mapped: &Mapped) -> bool {
        self.mappings.borrow().covered_by(mapped).next().is_some()
    }

    /// The objects of all mappings that can still be asked for, some more than once.
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        let mappings = self.mappings.borrow();
        let past = mappings.past.iter().map(|(_, mapping)| mapping);
        mappings.current.values().chain(past).filter_map(|mapping| mapping.object).collect()
    }

    /// Drops what was replaced before this time.
    pub(super) fn forget_before(&self, time: MonotonicTime) {
        let mut mappings = self.mappings.borrow_mut();
        if mappings.past.first().is_some_and(|(until, _)| *until < time) {
            Rc::make_mut(&mut mappings).past.retain(|(until, _)| *until >= time);
        }
    }

    /// Whether two are the same memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.mappings, &other.mappings)
    }

    /// Whether another process may have the same memory.
    pub(super) fn may_be_shared(&self) -> bool {
        Rc::strong_count(&self.mappings) > 1
    }
}

/// Whether two processes share their memory now. No, where one of them is gone, or where the kernel cannot tell (built without `kcmp(2)`).
pub(super) fn is_shared(one: Tgid, other: Tgid) -> bool {
    /// `enum kcmp_type` of `include/uapi/linux/kcmp.h`.
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: the call takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one.0, other.0, KCMP_VM, 0_usize, 0_usize) };
    order == 0
}

impl Mappings {
    fn insert(&mut self, time: MonotonicTime, mapped: &Mapped, object: Option<ObjectId>) {
        let start = mapped.start.0;
        let end = start.saturating_add(mapped.len);
        let covered: Vec<u64> = self.covered_by(mapped).collect();
        for first in covered {
            let Some(old) = self.current.remove(&first) else { continue };
            if old.start < start {
                self.current.insert(old.start, Mapping { end: start, ..old });
            }
            if old.end > end {
                let file_offset = old.file_offset + (end - old.start);
                self.current.insert(end, Mapping { start: end, file_offset, ..old });
            }
            self.past.push((time, old));
        }
        let file_offset = mapped.file_offset.0;
        self.current.insert(start, Mapping { start, end, file_offset, object, since: time });
    }

    /// First addresses of the current mappings that share an address with this one.
    fn covered_by(&self, mapped: &Mapped) -> impl Iterator<Item = u64> {
        let start = mapped.start.0;
        let below_end = self.current.range(..start.saturating_add(mapped.len)).rev();
        below_end.take_while(move |(_, mapping)| mapping.end > start).map(|(&first, _)| first)
    }

    fn all_at(&self, time: MonotonicTime) -> impl Iterator<Item = &Mapping> {
        let past = self.past.iter().filter(move |(until, _)| time < *until).map(|(_, mapping)| mapping);
        self.current.values().chain(past).filter(move |mapping| mapping.since <= time)
    }

    fn find(&self, address: u64, time: MonotonicTime) -> Option<&Mapping> {
        let covers = |mapping: &Mapping| mapping.start <= address && address < mapping.end;
        if let Some((_, mapping)) = self.current.range(..=address).next_back()
            && covers(mapping)
            && mapping.since <= time
        {
            return Some(mapping);
        }
        let past = self.past.iter().rev();
        past.filter(|(until, mapping)| mapping.since <= time && time < *until)
            .map(|(_, mapping)| mapping)
            .find(|mapping| covers(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_shares_its_memory_with_itself_and_with_no_other() {
        let this = Tgid(std::process::id());
        assert!(is_shared(this, this));
        assert!(!is_shared(this, Tgid(1)));
        assert!(!is_shared(this, Tgid(u32::MAX >> 1)), "there is no such process");
    }
}
