//! Reading a map while it grows.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::known::Known;
use super::lines::{MAX_LINE, entry};
use super::names::Names;

/// Most bytes of one map that are read at once: sampling goes on meanwhile, and the rest is read the next time.
const MOST_AT_ONCE: usize = 4 << 20;

/// What may be read and kept, of all maps together.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Bytes until the end of the drain.
    pub(super) bytes: usize,
    /// Ranges.
    pub(super) ranges: usize,
}

/// Bytes before the end of what was read that must be there again: else the map was written anew.
const PROOF: usize = 64;

/// How far a map was read.
#[derive(Default)]
pub(super) struct Tail {
    /// Device and inode; `None` before the first read.
    file: Option<(u64, u64)>,
    /// Bytes read, whole lines.
    read: u64,
    /// The last of them.
    proof: Vec<u8>,
}

impl Tail {
    /// Adds the lines that were not read yet to the news, as far as there is room.
    pub(super) fn read(&mut self, map: &File, known: &mut Known, names: &mut Names, room: &mut Room) {
        let Ok(metadata) = map.metadata() else { return };
        let file = Some((metadata.dev(), metadata.ino()));
        if self.file != file || metadata.len() < self.read || !self.is_as_before(map) {
            if self.file.is_some() {
                room.ranges += known.own_ranges();
                known.replace();
            }
            *self = Self { file, ..Self::default() };
        }
        let most = MOST_AT_ONCE.min(room.bytes);
        let wanted = usize::try_from(metadata.len() - self.read).map_or(most, |new| new.min(most));
        let mut bytes = vec![0; wanted];
        let Ok(len) = map.read_at(&mut bytes, self.read) else { return };
        bytes.truncate(len);
        room.bytes -= len;
        // The last line may be in the middle of being written.
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            if len == MOST_AT_ONCE {
                self.read += len as u64;
            }
            return;
        };
        for line in bytes[..end].split(|&byte| byte == b'\n') {
            if let Some((range, name)) = entry(&line[..line.len().min(MAX_LINE)])
                && room.ranges > 0
                && let Some(name) = names.number(&name)
            {
                let before = known.own_ranges();
                known.add(range, name);
                room.ranges -= known.own_ranges() - before;
            }
        }
        self.read += end as u64 + 1;
        self.proof = bytes[(end + 1).saturating_sub(PROOF)..=end].to_vec();
    }

    /// Whether what was read is there still.
    fn is_as_before(&self, map: &File) -> bool {
        let mut now = vec![0; self.proof.len()];
        let at = self.read.saturating_sub(self.proof.len() as u64);
        map.read_exact_at(&mut now, at).is_ok() && now == self.proof
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::types::UserAddress;

    /// A map, and what is known of it.
    struct Scene {
        file: File,
        tail: Tail,
        known: Known,
        names: Names,
        room: Room,
    }

    impl Scene {
        fn new() -> Self {
            let file = tempfile::tempfile().unwrap();
            let room = Room { bytes: 64 << 20, ranges: 1000 };
            Self { file, tail: Tail::default(), known: Known::default(), names: Names::default(), room }
        }

        fn write(&mut self, text: &str) {
            self.file.write_all(text.as_bytes()).unwrap();
        }

        fn look(&mut self) {
            self.tail.read(&self.file, &mut self.known, &mut self.names, &mut self.room);
            self.known.take_news();
        }

        fn name(&self, address: u64) -> Option<&str> {
            self.known.find(UserAddress(address)).map(|name| self.names.text(name))
        }
    }

    #[test]
    fn lines_are_read_as_they_come_and_when_they_are_whole() {
        let mut scene = Scene::new();
        scene.write("1000 10 one\n2000 10 tw");
        scene.look();
        assert_eq!((scene.name(0x1008), scene.name(0x2008)), (Some("one"), None));
        scene.write("o\n1000 10 three\n");
        scene.look();
        assert_eq!((scene.name(0x1008), scene.name(0x2008)), (Some("three"), Some("two")));
    }

    #[test]
    fn a_map_written_anew_is_read_anew() {
        let mut scene = Scene::new();
        scene.write("1000 10 one\n2000 10 two\n");
        scene.look();
        // Longer than before.
        scene.file.set_len(0).unwrap();
        scene.file.write_all_at(b"1000 10 another name at the place\n3000 10 three\n", 0).unwrap();
        scene.look();
        assert_eq!(scene.name(0x1008), Some("another name at the place"));
        assert_eq!((scene.name(0x2008), scene.name(0x3008)), (None, Some("three")));
    }

    #[test]
    fn what_a_program_wrote_that_is_gone_names_nothing() {
        let mut scene = Scene::new();
        scene.write("1000 10 one\n");
        scene.look();
        scene.known = Known::default();
        scene.write("2000 10 two\n");
        scene.look();
        assert_eq!((scene.name(0x1008), scene.name(0x2008)), (None, Some("two")));
    }

    #[test]
    fn no_more_is_read_and_kept_than_there_is_room_for() {
        let mut scene = Scene::new();
        scene.room = Room { bytes: 100, ranges: 5 };
        (0..20).for_each(|number| scene.write(&format!("{number}000 10 name\n")));
        scene.look();
        assert_eq!((scene.name(0x4000), scene.name(0x5000)), (Some("name"), None));
        assert!(scene.room.bytes < 20 && scene.room.ranges == 0);
        scene.file.set_len(0).unwrap();
        scene.room.bytes = 100;
        scene.file.write_all_at(b"1000 10 other\n", 0).unwrap();
        scene.look();
        assert_eq!((scene.name(0x1000), scene.room.ranges), (Some("other"), 4));
    }

    #[test]
    fn bytes_of_any_kind_are_passed_over() {
        let mut scene = Scene::new();
        scene.file.write_all(&[0xff; 5 << 20]).unwrap();
        scene.write("\n1000 10 one\n");
        (0..3).for_each(|_| scene.look());
        assert_eq!(scene.name(0x1008), Some("one"));
    }
}
