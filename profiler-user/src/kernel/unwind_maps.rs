//! The kernel's maps of unwind tables: rows and their index in mapped memory, what is known of each file, and the files asked for.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};

use aya::maps::{HashMap, MapData, RingBuf};
use bytes::Buf as _;
use profiler_common::limits::{CHUNK_ROWS, MAX_CHUNKS, MAX_ROW_PAGES};
use profiler_common::mapping::{FileEntry, FileKey, FileRequest};
use profiler_common::unwind::row::{Row, RowPage};
use range_alloc::RangeAllocator;

use super::KernelError;
use super::programs::Programs;
use super::row_chunks::{Chunk, RowChunks};
use super::tables::wait_for_running_programs;
use super::words::Words;
use crate::unwind::Table;

/// The maps. What they hold and why is for their owner to know.
pub struct UnwindMaps {
    files: HashMap<MapData, u64, Entry>,
    requests: RingBuf<MapData>,
    pages: Words,
    free_pages: RangeAllocator<u32>,
    chunks: RowChunks,
}

/// A table in the maps. Programs see it once a file's entry [leads](UnwindMaps::publish) to it.
#[derive(Debug)]
pub struct Placement {
    first_page: u32,
    pages: u32,
    base_page: u32,
    rows: Vec<PlacedRows>,
}

#[derive(Debug)]
struct PlacedRows {
    chunk: usize,
    rows: Range<u32>,
}

const CHUNK_BYTES: u64 = CHUNK_ROWS as u64 * 8;

impl Placement {
    /// What leads programs to this table, as that of the object with this number.
    #[must_use]
    pub fn entry(&self, object: u32) -> FileEntry {
        let Self { first_page, pages, base_page, .. } = *self;
        FileEntry { object, first_page, pages, base_page, seal: 0 }
    }
}

impl UnwindMaps {
    /// The maps of these programs, empty. Rows may grow to this many bytes.
    pub(super) fn take(programs: &mut Programs, bytes: u64) -> Result<Self, KernelError> {
        let chunk_limit = u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(MAX_CHUNKS).min(MAX_CHUNKS);
        let pages = Words::map(programs.array("ROW_PAGES")?, MAX_ROW_PAGES as usize);
        Ok(Self {
            files: programs.take("FILES")?,
            requests: programs.take("FILE_REQUESTS")?,
            pages: pages.map_err(KernelError::system("mmap of a BPF map"))?,
            free_pages: RangeAllocator::new(0..MAX_ROW_PAGES),
            chunks: RowChunks::start(programs.take("ROW_CHUNKS")?, chunk_limit)
                .map_err(KernelError::system("starting a thread"))?,
        })
    }

    /// Files that nothing is known of and that samples hit, or programs began with, and whether a program has begun. The kernel side asks
    /// once, until it is answered or told to [forget](Self::forget) the file.
    pub fn requests(&mut self) -> (Vec<FileRequest>, bool) {
        let (mut requests, mut has_begun) = (Vec::new(), false);
        while let Some(bytes) = self.requests.next() {
            let mut bytes: &[u8] = &bytes;
            let words = (bytes.try_get_u64_ne(), bytes.try_get_u64_ne(), bytes.try_get_u64_ne());
            if let ((Ok(file), Ok(address), Ok(time)), Ok(tgid)) = (words, bytes.try_get_u32_ne()) {
                match FileKey(file) {
                    FileKey::NONE => has_begun = true,
                    file => requests.push(FileRequest { file, address, time, tgid, padding: 0 }),
                }
            }
        }
        (requests, has_begun)
    }

    /// A descriptor that becomes readable when there are requests.
    pub fn requests_fd(&self) -> io::Result<OwnedFd> {
        self.requests.as_fd().try_clone_to_owned()
    }

    /// Says what is known of a file.
    pub fn publish(&mut self, file: FileKey, entry: FileEntry) -> Result<(), KernelError> {
        self.files.insert(file.0, Entry(entry.sealed(file)), 0).map_err(|error| KernelError::Load {
            cause: format!("a file cannot be announced to the programs: {error}"),
        })
    }

    /// Makes a file unknown: who meets it next asks for it.
    pub fn forget(&mut self, file: FileKey) {
        // It may be unknown already.
        let _ = self.files.remove(&file.0);
    }

    /// Writes the rows of a table; `None` where there is no room for them.
    pub fn place(&mut self, table: &Table) -> Result<Option<Placement>, KernelError> {
        let mut placement = Placement { first_page: 0, pages: 0, base_page: 0, rows: Vec::new() };
        let (Some(first), Some(last)) = (table.pages().first(), table.pages().last()) else {
            return Ok(Some(placement));
        };
        let Ok(index) = self.free_pages.allocate_range(last.number - first.number + 1) else {
            return Ok(None);
        };
        placement.first_page = index.start;
        placement.pages = index.end - index.start;
        placement.base_page = first.number;
        index.clone().for_each(|page| self.pages.store(page as usize, 0));
        for &page in table.pages() {
            let Some(rows) = self.place_rows(table.rows(page))? else {
                self.give_back(placement);
                return Ok(None);
            };
            let word = RowPage::new(rows.chunk as u16, rows.rows.start, rows.rows.end - rows.rows.start);
            self.pages.store((index.start + page.number - first.number) as usize, word.0);
            placement.rows.push(rows);
        }
        Ok(Some(placement))
    }

    /// Frees the room of tables to which no entry leads any more.
    pub fn free(&mut self, placements: Vec<Placement>) {
        if placements.is_empty() {
            return;
        }
        // A sample may have read an entry just before it was replaced.
        wait_for_running_programs();
        placements.into_iter().for_each(|placement| self.give_back(placement));
    }

    /// Makes room ahead for tables that will have this many rows together.
    pub fn expect_rows(&mut self, rows: usize) {
        self.chunks.make_ready(rows);
    }

    /// Bytes that rows take in the kernel.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.chunks.count()) * CHUNK_BYTES
    }

    /// Rows that there is room for, in pieces.
    #[must_use]
    pub fn free_rows(&self) -> usize {
        self.chunks.free_up_to_limit()
    }

    /// Takes back the room of a table that no sample can see.
    fn give_back(&mut self, Placement { first_page, pages, rows, .. }: Placement) {
        if pages > 0 {
            self.free_pages.free_range(first_page..first_page + pages);
        }
        for PlacedRows { chunk, rows } in rows {
            self.chunks.made()[chunk].free.free_range(rows);
        }
    }

    /// Writes the rows of a page, all into one chunk. A page has at most one row for each of its places and one more, so it fits.
    fn place_rows(&mut self, rows: &[Row]) -> Result<Option<PlacedRows>, KernelError> {
        let len = rows.len() as u32;
        let place_in = |(chunk, place): (usize, &mut Chunk)| {
            place.free.allocate_range(len).ok().map(|rows| PlacedRows { chunk, rows })
        };
        let mut found = self.chunks.made().iter_mut().enumerate().find_map(place_in);
        if found.is_none() && self.chunks.add()? {
            found = self.chunks.made().iter_mut().enumerate().next_back().and_then(place_in);
        }
        let Some(found) = found else { return Ok(None) };
        let place = &self.chunks.made()[found.chunk].rows;
        for (at, row) in found.rows.clone().zip(rows) {
            place.store(at as usize, row.0);
        }
        Ok(Some(found))
    }
}

/// An entry of the map of files, as aya wants to see it.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Entry(FileEntry);

// SAFETY: `FileEntry` is `repr(C)` and consists of integers without padding between them.
unsafe impl aya::Pod for Entry {}
