//! Which object each file holds that the kernel side was told of.

use std::collections::HashMap;

use profiler_common::limits::MAX_FILES;
use profiler_common::mapping::FileKey;

use crate::processes::ObjectId;

/// The files that are known to the kernel side. An object can be held by many: each copy is a file of its own.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: HashMap<FileKey, KnownFile>,
    notes: u64,
}

#[derive(Clone, Copy, Debug)]
struct KnownFile {
    object: ObjectId,
    /// The note that was made of it last.
    noted: u64,
}

/// The kernel's map takes no more files than [`MAX_FILES`]. Above this number the oldest make room.
const MANY: usize = MAX_FILES as usize / 4 * 3;

impl Files {
    /// Notes that a file holds an object; the object that it held until now.
    pub(super) fn note(&mut self, file: FileKey, object: ObjectId) -> Option<ObjectId> {
        self.notes += 1;
        let known = self.known.insert(file, KnownFile { object, noted: self.notes });
        known.map(|known| known.object)
    }

    /// Takes out the files noted longest ago when there are too many, with their objects. One that is still in use is asked for again.
    pub(super) fn make_room(&mut self) -> Vec<(FileKey, ObjectId)> {
        if self.known.len() <= MANY {
            return Vec::new();
        }
        let mut by_age: Vec<(u64, FileKey)> =
            self.known.iter().map(|(&key, file)| (file.noted, key)).collect();
        by_age.sort_unstable_by_key(|&(noted, _)| noted);
        let oldest = by_age.into_iter().take(MANY / 3);
        oldest.filter_map(|(_, key)| Some((key, self.known.remove(&key)?.object))).collect()
    }

    /// The objects in them, those of several files several times.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.known.values().map(|file| file.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_make_room() {
        let mut files = Files::default();
        let object = ObjectId::from_number;
        let key = |number: usize| FileKey(2 * number as u64 + 1);
        (0..MANY).for_each(|number| assert_eq!(files.note(key(number), object(1)), None));
        assert_eq!(files.make_room(), []);
        assert_eq!(files.note(key(0), object(2)), Some(object(1)));
        files.note(key(MANY), object(1));
        let gone = files.make_room();
        assert_eq!(gone.len(), MANY / 3);
        assert!(gone.contains(&(key(1), object(1))));
        assert!(!gone.iter().any(|(file, _)| *file == key(0)), "it was noted again");
        assert_eq!(files.objects().count(), MANY + 1 - MANY / 3);
    }
}
