//! Names and lines from jitdump files, by time.
//!
//! The format is that of `tools/perf/Documentation/jitdump-specification.txt` of the kernel: a header, then records with the time at
//! which code was made or moved. Samples carry the same clock.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use super::Place;
use crate::processes::{JitDump, MAX_LINE};
use crate::profile::Line;
use crate::symbols::NamedCode;
use crate::types::MonotonicTime;

/// `JiTD`, in the byte order of the machine that wrote it.
const MAGIC: u32 = 0x4a69_5444;

/// Bytes of the header of version 1.
const HEADER: u32 = 40;

/// Bytes of the part that all records begin with: kind, length, time.
const RECORD: u32 = 16;

/// Flag of the header: times are those of a counter of the CPU.
const ARCH_TIMESTAMP: u64 = 1;

/// Records of code that was made, of code that was moved, and of lines.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;

/// Bytes of a record with lines that are read, and moves that are remembered.
const MAX_LINES: u32 = 16 << 20;
const MAX_MOVES: usize = 1 << 16;

/// What V8 adds to the addresses of lines: the length of an ELF header, before which perf once put code.
const V8_SHIFT: u64 = 0x40;

/// The functions at these sorted places, in their order; none when the file is no dump of this machine.
pub(super) fn names(dump: &JitDump, places: &[Place]) -> Vec<Option<NamedCode>> {
    let mut search = Search::new(places, dump.until);
    // What comes before damage counts.
    let _ = read_moves(&dump.file, &mut search.moves);
    let _ = read(&dump.file, &mut search);
    search.into_names()
}

/// The header of a record.
struct Record {
    kind: u32,
    /// Bytes that follow.
    len: u32,
    time: MonotonicTime,
}

/// A dump from its beginning.
struct Reader<'a> {
    bytes: BufReader<&'a File>,
    /// Bytes that may be left.
    left: u64,
    /// Whether its times are those of samples.
    has_times: bool,
}

impl<'a> Reader<'a> {
    fn open(mut file: &'a File) -> io::Result<Self> {
        io::Seek::rewind(&mut file)?;
        let mut bytes = BufReader::with_capacity(1 << 16, file);
        let (magic, version, len, machine) =
            (u32_of(&mut bytes)?, u32_of(&mut bytes)?, u32_of(&mut bytes)?, u32_of(&mut bytes)?);
        let _ = (u32_of(&mut bytes)?, u32_of(&mut bytes)?, u64_of(&mut bytes)?);
        let flags = u64_of(&mut bytes)?;
        let is_ours = magic == MAGIC && version >= 1 && machine == own_machine();
        let Some(rest) = len.checked_sub(HEADER).filter(|_| is_ours) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        bytes.seek_relative(rest.into())?;
        Ok(Self { bytes, left: file.metadata()?.len(), has_times: flags & ARCH_TIMESTAMP == 0 })
    }

    /// Passes over what was not read of a record.
    fn skip(&mut self, rest: u64) -> io::Result<()> {
        self.bytes.seek_relative(i64::try_from(rest).map_err(|_| io::ErrorKind::InvalidData)?)
    }

    /// The next record; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Record>> {
        if self.bytes.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let (kind, len, time) =
            (u32_of(&mut self.bytes)?, u32_of(&mut self.bytes)?, u64_of(&mut self.bytes)?);
        self.left = self.left.checked_sub(len.into()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let len = len.checked_sub(RECORD).ok_or(io::ErrorKind::InvalidData)?;
        let time = MonotonicTime(if self.has_times { time } else { 0 });
        Ok(Some(Record { kind, len, time }))
    }
}

/// Code that was moved, by its index: from when it lies where.
type Moves = HashMap<u64, Vec<(MonotonicTime, Range<u64>)>>;

fn read_moves(file: &File, moves: &mut Moves) -> io::Result<()> {
    let mut reader = Reader::open(file)?;
    let mut count = 0;
    while let Some(Record { kind, len, time }) = reader.next()? {
        let mut record = (&mut reader.bytes).take(len.into());
        if kind == MOVE && count < MAX_MOVES {
            let _ids = (u32_of(&mut record)?, u32_of(&mut record)?);
            let [_, _, new, size, index] = numbers(&mut record)?;
            moves.entry(index).or_default().push((time, new..new.saturating_add(size)));
            count += 1;
        }
        let rest = record.limit();
        reader.skip(rest)?;
    }
    Ok(())
}

fn read(file: &File, search: &mut Search<'_>) -> io::Result<()> {
    let mut reader = Reader::open(file)?;
    let mut lines = Vec::new();
    while let Some(Record { kind, len, time }) = reader.next()? {
        let mut record = (&mut reader.bytes).take(len.into());
        match kind {
            LOAD => {
                let _ids = (u32_of(&mut record)?, u32_of(&mut record)?);
                let [_, start, size, index] = numbers(&mut record)?;
                let code = start..start.saturating_add(size);
                let moved = search.moves.get(&index).cloned().unwrap_or_default();
                let found = search.wants(&code) || moved.iter().any(|(_, to)| search.wants(to));
                if found {
                    let mut name = Vec::new();
                    (&mut record).take(MAX_LINE as u64).read_until(0, &mut name)?;
                    if name.len() < MAX_LINE && !name.ends_with(b"\0") {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    let name =
                        String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(&name)).into_owned();
                    let lines: Vec<(u64, Line)> = Lines::read(&lines).collect();
                    search.load(time, &code, code.start, &name, &lines);
                    for (time, to) in moved {
                        search.load(time, &to, code.start, &name, &lines);
                    }
                }
                lines.clear();
            }
            // It comes before the code that it belongs to.
            DEBUG_INFO if len <= MAX_LINES => {
                lines.clear();
                record.read_to_end(&mut lines)?;
            }
            _ => {}
        }
        let rest = record.limit();
        reader.skip(rest)?;
    }
    Ok(())
}

/// Places whose functions are looked for.
struct Search<'a> {
    places: &'a [Place],
    /// Code from after this time is not theirs.
    until: MonotonicTime,
    moves: Moves,
    found: Vec<Option<Found>>,
    /// Whether lines lie behind the code that they belong to.
    has_shifted_lines: bool,
}

struct Found {
    name: String,
    since: MonotonicTime,
    /// Its line as the file has it, and [shifted](V8_SHIFT).
    line: Option<Line>,
    shifted_line: Option<Line>,
}

impl<'a> Search<'a> {
    fn new(places: &'a [Place], until: Option<MonotonicTime>) -> Self {
        let mut found = Vec::new();
        found.resize_with(places.len(), || None);
        let until = until.unwrap_or(MonotonicTime(u64::MAX));
        Self { places, until, moves: Moves::new(), found, has_shifted_lines: false }
    }

    fn wants(&self, code: &Range<u64>) -> bool {
        let first = self.places.partition_point(|(address, _)| address.0 < code.start);
        self.places.get(first).is_some_and(|(address, _)| address.0 < code.end)
    }

    /// Takes code that is there from this time on; its lines are those of where it was made.
    fn load(
        &mut self,
        since: MonotonicTime,
        code: &Range<u64>,
        made_at: u64,
        name: &str,
        lines: &[(u64, Line)],
    ) {
        if since > self.until || name.is_empty() {
            return;
        }
        let first = self.places.partition_point(|(address, _)| address.0 < code.start);
        let made = made_at..made_at.saturating_add(code.end - code.start);
        self.has_shifted_lines |= lines.iter().any(|(address, _)| *address >= made.end);
        for at in first..self.places.len() {
            let (address, time) = self.places[at];
            if address.0 >= code.end {
                break;
            }
            let time = time.unwrap_or(MonotonicTime(u64::MAX));
            let is_better = match &self.found[at] {
                None => true,
                // What was there already, the latest of it; else what came first after it.
                Some(found) if since <= time => found.since > time || found.since <= since,
                Some(found) => found.since > since,
            };
            if is_better {
                let place = made.start + (address.0 - code.start);
                let line = |place: u64| {
                    let before = lines.iter().filter(|(start, _)| *start <= place);
                    before.max_by_key(|(start, _)| *start).map(|(_, line)| line.clone())
                };
                let (line, shifted_line) = (line(place), line(place.saturating_add(V8_SHIFT)));
                self.found[at] = Some(Found { name: name.into(), since, line, shifted_line });
            }
        }
    }

    fn into_names(self) -> Vec<Option<NamedCode>> {
        let shifted = self.has_shifted_lines;
        let code = |Found { name, line, shifted_line, .. }| NamedCode {
            name,
            line: if shifted { shifted_line } else { line },
        };
        self.found.into_iter().map(|found| found.map(code)).collect()
    }
}

/// The entries of a record of lines: address and line.
struct Lines<'a> {
    bytes: &'a [u8],
    left: u64,
    file: Arc<str>,
}

impl<'a> Lines<'a> {
    fn read(mut bytes: &'a [u8]) -> Self {
        let left = u64_of(&mut bytes).and_then(|_code| u64_of(&mut bytes)).unwrap_or(0);
        Self { bytes, left, file: "".into() }
    }

    fn entry(&mut self) -> io::Result<(u64, Line)> {
        /// Stands for the name of the entry before.
        const SAME: &[u8] = b"\xff\0";
        let address = u64_of(&mut self.bytes)?;
        let (number, _discriminator) = (u32_of(&mut self.bytes)?, u32_of(&mut self.bytes)?);
        let mut file = Vec::new();
        self.bytes.read_until(0, &mut file)?;
        if file != SAME {
            self.file = String::from_utf8_lossy(file.strip_suffix(b"\0").unwrap_or(&file)).into();
        }
        Ok((address, Line { file: Arc::clone(&self.file), number }))
    }
}

impl Iterator for Lines<'_> {
    type Item = (u64, Line);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.entry().ok()
    }
}

fn u32_of(bytes: &mut impl Read) -> io::Result<u32> {
    let mut number = [0; 4];
    bytes.read_exact(&mut number)?;
    Ok(u32::from_le_bytes(number))
}

fn u64_of(bytes: &mut impl Read) -> io::Result<u64> {
    let mut number = [0; 8];
    bytes.read_exact(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

fn numbers<const N: usize>(bytes: &mut impl Read) -> io::Result<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64_of(bytes)?;
    }
    Ok(numbers)
}

/// What ELF files of this machine carry (`e_machine`).
fn own_machine() -> u32 {
    let machine =
        if cfg!(target_arch = "aarch64") { object::elf::EM_AARCH64 } else { object::elf::EM_X86_64 };
    machine.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::types::UserAddress;

    /// A dump as a runtime writes it.
    struct Dump(Vec<u8>);

    impl Dump {
        fn new() -> Self {
            let mut bytes = Vec::new();
            for field in [MAGIC, 1, HEADER, own_machine(), 0, 7] {
                bytes.extend(field.to_le_bytes());
            }
            bytes.extend([0; 16]);
            Self(bytes)
        }

        fn record(&mut self, kind: u32, time: u64, body: &[u8]) {
            self.0.extend(kind.to_le_bytes());
            self.0.extend((RECORD + body.len() as u32).to_le_bytes());
            self.0.extend(time.to_le_bytes());
            self.0.extend(body);
        }

        fn load(&mut self, time: u64, start: u64, size: u64, index: u64, name: &str) {
            let mut body = [0; 8].to_vec();
            for number in [start, start, size, index] {
                body.extend(number.to_le_bytes());
            }
            body.extend(name.bytes().chain([0]));
            body.extend(vec![0x90; size as usize]);
            self.record(LOAD, time, &body);
        }

        fn moved(&mut self, time: u64, new: u64, size: u64, index: u64) {
            let mut body = [0; 8].to_vec();
            for number in [0, 0, new, size, index] {
                body.extend(number.to_le_bytes());
            }
            self.record(MOVE, time, &body);
        }

        fn lines(&mut self, start: u64, lines: &[(u64, u32, &str)]) {
            let mut body = [start, lines.len() as u64].map(u64::to_le_bytes).concat();
            for (address, number, file) in lines {
                body.extend(address.to_le_bytes());
                body.extend(number.to_le_bytes());
                body.extend([0; 4]);
                body.extend(if file.is_empty() { &b"\xff"[..] } else { file.as_bytes() });
                body.push(0);
            }
            self.record(DEBUG_INFO, 0, &body);
        }

        fn code(&self, places: &[(u64, u64)], until: Option<u64>) -> Vec<Option<NamedCode>> {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&self.0).unwrap();
            let dump = JitDump { file: Arc::new(file), until: until.map(MonotonicTime) };
            let places: Vec<Place> = places
                .iter()
                .map(|&(address, time)| (UserAddress(address), Some(MonotonicTime(time))))
                .collect();
            names(&dump, &places)
        }

        fn names(&self, places: &[(u64, u64)]) -> Vec<Option<String>> {
            self.code(places, None).into_iter().map(|code| Some(code?.name)).collect()
        }
    }

    fn some(names: &[&str]) -> Vec<Option<String>> {
        names.iter().map(|name| (!name.is_empty()).then(|| (*name).into())).collect()
    }

    #[test]
    fn memory_that_is_used_again_has_the_name_of_its_time() {
        let mut dump = Dump::new();
        dump.load(10, 0x1000, 0x40, 1, "one");
        dump.load(20, 0x1000, 0x20, 2, "two");
        dump.load(30, 0x2000, 0x20, 3, "three");
        let places = [(0x1000, 5), (0x1000, 15), (0x1000, 20), (0x1030, 25), (0x1fff, 30), (0x2000, 40)];
        assert_eq!(dump.names(&places), some(&["one", "one", "two", "one", "", "three"]));
    }

    #[test]
    fn moved_code_keeps_its_name_and_lines() {
        let mut dump = Dump::new();
        dump.lines(0x1000, &[(0x1000, 3, "a.js"), (0x1010, 4, "")]);
        dump.load(10, 0x1000, 0x20, 1, "one");
        dump.moved(20, 0x5000, 0x20, 1);
        let code = dump.code(&[(0x1008, 15), (0x5018, 25)], None);
        let lines: Vec<_> = code.iter().map(|code| code.as_ref().unwrap().line.clone().unwrap()).collect();
        assert_eq!(lines.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.js:3", "a.js:4"]);
        assert!(code.iter().all(|code| code.as_ref().unwrap().name == "one"));
    }

    #[test]
    fn lines_of_v8_are_shifted_back() {
        let mut dump = Dump::new();
        dump.lines(0x1000, &[(0x1040, 3, "a.js"), (0x1058, 4, "")]);
        dump.load(10, 0x1000, 0x20, 1, "one");
        let line = |at| dump.code(&[(at, 15)], None)[0].as_ref().unwrap().line.as_ref().unwrap().number;
        assert_eq!((line(0x1000), line(0x101f)), (3, 4));
    }

    #[test]
    fn a_forked_process_has_the_names_from_before() {
        let mut dump = Dump::new();
        dump.load(10, 0x1000, 0x20, 1, "one");
        dump.load(30, 0x1000, 0x20, 2, "two");
        let code = dump.code(&[(0x1000, 40)], Some(20));
        assert_eq!(code[0].as_ref().unwrap().name, "one");
    }

    #[test]
    fn damage_costs_what_follows() {
        let mut dump = Dump::new();
        dump.load(10, 0x1000, 0x20, 1, "one");
        let whole = dump.0.len();
        dump.load(20, 0x2000, 0x20, 2, "two");
        for len in 0..dump.0.len() {
            let names = Dump(dump.0[..len].to_vec()).names(&[(0x1000, 50)]);
            assert!(names == some(&["one"]) || names == some(&[""]), "{len}");
            assert!(len < whole || names == some(&["one"]), "{len}");
        }
        dump.0[0] ^= 1;
        assert_eq!(dump.names(&[(0x1000, 50)]), some(&[""]));
    }
}
