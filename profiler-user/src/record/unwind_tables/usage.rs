//! Which objects have their unwind table in the kernel, which lack it and why, and when samples hit them last.

use std::collections::HashMap;

use profiler_common::mapping::FileKey;

use crate::processes::{ObjectId, Objects, Unreadable};
use crate::profile::ObjectLack;
use crate::types::MonotonicTime;

/// What is known of the tables of all objects.
#[derive(Debug, Default)]
pub(super) struct Usage {
    objects: HashMap<ObjectId, Use>,
    /// Samples that went through an object while it lacked its table.
    lacking: HashMap<(ObjectId, Lack), u64>,
    drains: u64,
}

#[derive(Debug)]
struct Use {
    /// An object can be known by several keys: it was copied, or replaced by itself.
    files: Vec<FileKey>,
    state: State,
    /// Rows of its table, when it was compiled once.
    rows: usize,
    /// The drain that brought the last sample in it.
    last_hit: u64,
    /// The drain in which its state was noted.
    noted: u64,
    /// Whether there was no room for its table at some time.
    found_no_room: bool,
}

/// Where the table of an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Asked for.
    Awaited,
    /// In the kernel since then.
    Placed(MonotonicTime),
    /// Nowhere, for want of memory.
    NoRoom,
    /// There is none, for this reason.
    None(String),
    /// There was no file to compile it from.
    Unreadable(Unreadable),
}

/// Why samples found no table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lack {
    NotYet,
    NoRoom,
    None(String),
}

/// A table that no sample has used for this many drains (2 s) may make room for another.
const IDLE_DRAINS: u64 = 10;

/// Tables smaller than this part of another stay: they make no room worth speaking of, and callers often lie in small objects, which
/// samples do not show as long as the object that they call has no table.
const SMALL_PART: usize = 16;

/// Objects that are named in outputs.
const MAX_REPORTED: usize = 32;

impl Usage {
    /// Notes that this file holds the object. Whether the table of the object is to be compiled: it was not tried, or there was nothing
    /// to read when it was.
    pub(super) fn add_file(&mut self, object: ObjectId, file: FileKey) -> bool {
        let drain = self.drains;
        let mut is_new = false;
        let known = self.objects.entry(object).or_insert_with(|| {
            is_new = true;
            Use {
                files: Vec::new(),
                state: State::Awaited,
                rows: 0,
                last_hit: drain,
                noted: drain,
                found_no_room: false,
            }
        });
        if !known.files.contains(&file) {
            known.files.push(file);
        }
        if matches!(known.state, State::Unreadable(_)) {
            known.state = State::Awaited;
            is_new = true;
        }
        is_new
    }

    /// Notes that this file holds the object no more, or that the kernel side forgot it.
    pub(super) fn remove_file(&mut self, object: ObjectId, file: FileKey) {
        if let Some(known) = self.objects.get_mut(&object) {
            known.files.retain(|known| *known != file);
        }
    }

    /// Whether a table may still be placed for an object that has none now.
    pub(super) fn may_follow(&self, object: ObjectId) -> bool {
        let state = self.objects.get(&object).map(|known| &known.state);
        matches!(state, Some(State::Awaited | State::Placed(_) | State::NoRoom))
    }

    /// The files that hold an object.
    pub(super) fn files(&self, object: ObjectId) -> &[FileKey] {
        self.objects.get(&object).map_or(&[], |known| &known.files)
    }

    /// Notes what became of an object's table, which has this many rows.
    pub(super) fn set(&mut self, object: ObjectId, state: State, rows: usize) {
        if let Some(known) = self.objects.get_mut(&object) {
            known.found_no_room |= state == State::NoRoom;
            known.state = state;
            known.rows = rows;
            known.last_hit = self.drains;
            known.noted = self.drains;
        }
    }

    /// Counts a stack with frames in these objects, of which there were so many samples, the first at this time. `is_missing` says whether it
    /// lacked a table. The answer are the objects in it whose tables are awaited.
    pub(super) fn observe(
        &mut self,
        objects: impl Iterator<Item = ObjectId>,
        is_missing: bool,
        first: MonotonicTime,
        samples: u64,
    ) -> Vec<ObjectId> {
        let mut objects: Vec<ObjectId> = objects.collect();
        objects.sort_unstable();
        objects.dedup();
        let mut awaiting = Vec::new();
        for object in objects {
            let Some(known) = self.objects.get_mut(&object) else { continue };
            known.last_hit = self.drains;
            if known.state == State::Awaited {
                awaiting.push(object);
            }
            let awaited = if known.found_no_room { Lack::NoRoom } else { Lack::NotYet };
            let lack = match &known.state {
                State::Awaited if is_missing => awaited,
                State::Placed(since) if is_missing && *since > first => awaited,
                State::NoRoom => Lack::NoRoom,
                State::None(why) => Lack::None(why.clone()),
                State::Unreadable(why) => Lack::None(why.describe().into()),
                State::Awaited | State::Placed(_) => continue,
            };
            *self.lacking.entry((object, lack)).or_default() += samples;
        }
        awaiting
    }

    /// Ends a drain. An object that lacks its table for want of memory and was hit, and would find room by now, is awaited again.
    /// `free` is the number of rows that there is room for.
    pub(super) fn end_drain(&mut self, free: usize) -> Option<ObjectId> {
        let drain = self.drains;
        self.drains += 1;
        let wants = |known: &Use| {
            known.state == State::NoRoom
                && known.last_hit == drain
                && known.noted + IDLE_DRAINS < drain
                && with_gaps(known.rows) <= free + self.idle_rows(known.rows)
        };
        let object = *self.objects.iter().find(|(_, known)| wants(known))?.0;
        self.objects.get_mut(&object)?.state = State::Awaited;
        Some(object)
    }

    /// Objects whose tables are to make room for this many rows, those first that samples hit longest ago; none when that is not
    /// enough. `free` is the number of rows that there is room for.
    pub(super) fn make_room(&mut self, rows: usize, free: usize) -> Vec<ObjectId> {
        let wanted = with_gaps(rows);
        if free + self.idle_rows(rows) < wanted {
            return Vec::new();
        }
        let mut idle: Vec<(u64, ObjectId)> =
            self.idle(rows).map(|(&object, known)| (known.last_hit, object)).collect();
        idle.sort_unstable();
        let mut room = free;
        let mut chosen = Vec::new();
        for (_, object) in idle {
            if room >= wanted {
                break;
            }
            if let Some(known) = self.objects.get_mut(&object) {
                room += known.rows;
                known.state = State::NoRoom;
                known.found_no_room = true;
                known.noted = self.drains;
                chosen.push(object);
            }
        }
        chosen
    }

    /// What samples lacked, most of them first.
    pub(super) fn report(&self, objects: &Objects, unwind_memory: u64) -> Vec<ObjectLack> {
        let mut lacks: Vec<ObjectLack> = self
            .lacking
            .iter()
            .map(|((object, lack), &samples)| ObjectLack {
                object: objects.get(*object).path.display().to_string(),
                samples,
                reason: lack.describe(unwind_memory),
            })
            .collect();
        lacks.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.object.cmp(&b.object)));
        lacks.truncate(MAX_REPORTED);
        lacks
    }

    /// Objects whose tables may make room for one of this many rows.
    fn idle(&self, rows: usize) -> impl Iterator<Item = (&ObjectId, &Use)> {
        self.objects.iter().filter(move |(_, known)| {
            matches!(known.state, State::Placed(_))
                && known.last_hit + IDLE_DRAINS < self.drains
                && known.rows >= rows / SMALL_PART
        })
    }

    fn idle_rows(&self, rows: usize) -> usize {
        self.idle(rows).map(|(_, known)| known.rows).sum()
    }
}

/// Rows with what is lost at the ends of chunks, as each page of rows lies in one.
fn with_gaps(rows: usize) -> usize {
    rows + rows / 16
}

impl Lack {
    fn describe(&self, unwind_memory: u64) -> String {
        match self {
            Self::NotYet => "it was still being compiled".into(),
            Self::NoRoom => format!(
                "it did not fit into --unwind-memory {} beside those of other objects in use; allow more",
                unwind_memory >> 20
            ),
            Self::None(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ObjectId = ObjectId::from_number(1);
    const TWO: ObjectId = ObjectId::from_number(2);

    fn hit(tables: &mut Usage, object: ObjectId, is_missing: bool, at: u64) {
        tables.observe([object; 3].into_iter(), is_missing, MonotonicTime(at), 5);
    }

    fn placed(object: ObjectId, rows: usize) -> Usage {
        let mut tables = Usage::default();
        tables.add_file(object, FileKey(1));
        tables.set(object, State::Placed(MonotonicTime(100)), rows);
        tables
    }

    #[test]
    fn a_sample_from_before_its_table_is_told_from_one_after() {
        let mut tables = placed(ONE, 10);
        hit(&mut tables, ONE, true, 99);
        assert_eq!(tables.lacking, HashMap::from([((ONE, Lack::NotYet), 5)]));
        hit(&mut tables, ONE, true, 100);
        hit(&mut tables, ONE, false, 99);
        assert_eq!(tables.lacking.values().sum::<u64>(), 5);
    }

    #[test]
    fn an_object_without_a_table_is_counted_however_its_stacks_end() {
        let mut tables = placed(ONE, 0);
        tables.set(ONE, State::None("why".into()), 0);
        hit(&mut tables, ONE, false, 200);
        assert_eq!(tables.lacking, HashMap::from([((ONE, Lack::None("why".into())), 5)]));
    }

    #[test]
    fn what_could_not_be_read_is_tried_again_and_nothing_else() {
        let mut tables = Usage::default();
        assert!(tables.add_file(ONE, FileKey(1)));
        assert!(!tables.add_file(ONE, FileKey(1)) && tables.may_follow(ONE));
        tables.set(ONE, State::Unreadable(Unreadable::Gone), 0);
        assert!(!tables.may_follow(ONE));
        assert!(tables.add_file(ONE, FileKey(3)) && tables.may_follow(ONE));
        tables.set(ONE, State::None("why".into()), 0);
        assert!(!tables.add_file(ONE, FileKey(5)) && !tables.may_follow(ONE));
        tables.remove_file(ONE, FileKey(3));
        assert_eq!(tables.files(ONE), [FileKey(1), FileKey(5)]);
    }

    #[test]
    fn only_tables_that_no_sample_uses_make_room() {
        let mut tables = placed(ONE, 10);
        tables.add_file(TWO, FileKey(3));
        tables.set(TWO, State::NoRoom, 8);
        for _ in 0..=IDLE_DRAINS {
            assert_eq!(tables.make_room(8, 7), []);
            hit(&mut tables, TWO, true, 200);
            assert_eq!(tables.end_drain(7), None);
        }
        hit(&mut tables, TWO, true, 200);
        assert_eq!(tables.end_drain(0), Some(TWO), "the first has been idle for long enough");
        assert_eq!(tables.make_room(11, 0), [], "not enough");
        assert_eq!(tables.make_room(8, 8), [], "nothing needs to go");
        assert_eq!(tables.make_room(8, 0), [ONE]);
        assert_eq!(tables.make_room(8, 0), [], "no longer there");
    }

    #[test]
    fn small_tables_stay() {
        let mut tables = placed(ONE, 10);
        tables.add_file(TWO, FileKey(3));
        tables.set(TWO, State::Placed(MonotonicTime(100)), 200);
        (0..=IDLE_DRAINS).for_each(|_| assert_eq!(tables.end_drain(0), None));
        assert_eq!(tables.make_room(180, 0), [TWO]);
    }
}
