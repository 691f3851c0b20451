//! Mappings whose records were looked at and that the history has yet to take: what has just been mapped is asked for first.

use std::collections::HashMap;

use crate::kernel::{Mapped, SidebandRecord};
use crate::processes::ObjectId;
use crate::types::{MonotonicTime, Tgid, UserAddress};

/// Changes of processes that the history does not know yet.
#[derive(Debug, Default)]
pub(super) struct FreshMappings(HashMap<Tgid, Vec<(MonotonicTime, Change)>>);

#[derive(Clone, Copy, Debug)]
enum Change {
    /// A new program or a new process: what was there before is gone, or unknown.
    Began,
    Mapped {
        start: u64,
        len: u64,
        object: Option<ObjectId>,
    },
}

/// What is known here of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// It was mapped a moment ago, from this object or from none.
    Mapped(Option<ObjectId>),
    /// Nothing, but the history is behind for this process.
    Unknown,
    /// Nothing: the history knows all.
    Unchanged,
}

impl FreshMappings {
    /// Notes that a process has mapped this.
    pub(super) fn note_mapped(
        &mut self,
        time: MonotonicTime,
        tgid: Tgid,
        mapped: &Mapped,
        object: Option<ObjectId>,
    ) {
        let change = Change::Mapped { start: mapped.start.0, len: mapped.len, object };
        self.0.entry(tgid).or_default().push((time, change));
    }

    /// Notes that a process, or a program in it, has begun.
    pub(super) fn note(&mut self, time: MonotonicTime, record: &SidebandRecord) {
        if let SidebandRecord::Executed { tgid } | SidebandRecord::Forked { child: tgid, .. } = record {
            self.0.entry(*tgid).or_default().push((time, Change::Began));
        }
    }

    /// What this address of a process held at that time.
    pub(super) fn find(&self, tgid: Tgid, address: UserAddress, time: MonotonicTime) -> Fresh {
        let Some(changes) = self.0.get(&tgid) else { return Fresh::Unchanged };
        let until_then = changes.iter().rev().filter(|(at, _)| *at <= time);
        for (_, change) in until_then {
            match *change {
                Change::Began => break,
                Change::Mapped { start, len, object } if address.0.wrapping_sub(start) < len => {
                    return Fresh::Mapped(object);
                }
                Change::Mapped { .. } => {}
            }
        }
        Fresh::Unknown
    }

    /// Forgets what the history has taken.
    pub(super) fn forget_until(&mut self, time: MonotonicTime) {
        self.0.retain(|_, changes| {
            changes.retain(|(at, _)| *at > time);
            !changes.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FileOffset;

    const ONE: Tgid = Tgid(1);

    fn mapped(start: u64) -> Mapped {
        let (path, file) = (b"/x".to_vec(), None);
        Mapped { start: UserAddress(start), len: 0x1000, file_offset: FileOffset(0), path, file }
    }

    #[test]
    fn the_last_mapping_before_the_question_is_the_answer() {
        let mut fresh = FreshMappings::default();
        let object = |number| Some(ObjectId::from_number(number));
        let find =
            |fresh: &FreshMappings, address, time| fresh.find(ONE, UserAddress(address), MonotonicTime(time));
        assert_eq!(find(&fresh, 0x1000, 9), Fresh::Unchanged);
        fresh.note_mapped(MonotonicTime(10), ONE, &mapped(0x1000), object(1));
        fresh.note_mapped(MonotonicTime(20), ONE, &mapped(0x1000), object(2));
        assert_eq!(find(&fresh, 0x1fff, 15), Fresh::Mapped(object(1)));
        assert_eq!(find(&fresh, 0x1fff, 25), Fresh::Mapped(object(2)));
        assert_eq!(find(&fresh, 0x2000, 25), Fresh::Unknown);
        assert_eq!(find(&fresh, 0x1000, 5), Fresh::Unknown, "the history may be behind");
        fresh.note(MonotonicTime(30), &SidebandRecord::Executed { tgid: ONE });
        assert_eq!(find(&fresh, 0x1000, 35), Fresh::Unknown);
        fresh.forget_until(MonotonicTime(30));
        assert_eq!(find(&fresh, 0x1000, 35), Fresh::Unchanged);
    }
}
