//! Unwind tables in the kernel's maps, filled through memory.
//!
//! A table is published last, by the entries of its files, and withdrawn first: no sample sees one that is half written.

use std::collections::HashMap;
use std::ops::Range;

use profiler_common::limits::{CHUNK_ROWS, MAX_CHUNKS, MAX_ROW_PAGES};
use profiler_common::mapping::{FileEntry, FileKey};
use profiler_common::unwind::row::{Row, RowPage};
use range_alloc::RangeAllocator;

use super::KernelError;
use super::programs::Programs;
use super::row_chunks::{Chunk, RowChunks};
use super::tables::wait_for_running_programs;
use super::words::Words;
use crate::processes::ObjectId;
use crate::unwind::Table;

/// The tables of all objects, one for each object however many files hold it.
pub(super) struct UnwindTables {
    pages: Words,
    free_pages: RangeAllocator<u32>,
    chunks: RowChunks,
    placed: HashMap<ObjectId, PlacedTable>,
}

/// Where a table is.
struct PlacedTable {
    files: Vec<FileKey>,
    entry: FileEntry,
    rows: Vec<PlacedRows>,
}

struct PlacedRows {
    chunk: usize,
    rows: Range<u32>,
}

/// Where the table of an object went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Into the maps.
    Whole,
    /// Nowhere: the memory granted for tables is used up.
    NoMemory,
}

const CHUNK_BYTES: u64 = CHUNK_ROWS as u64 * 8;

impl UnwindTables {
    /// Empty tables that may grow to this many bytes.
    pub(super) fn new(programs: &mut Programs, bytes: u64) -> Result<Self, KernelError> {
        let chunk_limit = u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(MAX_CHUNKS).min(MAX_CHUNKS);
        let pages = Words::map(programs.array("ROW_PAGES")?, MAX_ROW_PAGES as usize);
        Ok(Self {
            pages: pages.map_err(KernelError::system("mmap of a BPF map"))?,
            free_pages: RangeAllocator::new(0..MAX_ROW_PAGES),
            chunks: RowChunks::start(programs.take_row_chunks()?, chunk_limit)
                .map_err(KernelError::system("starting a thread"))?,
            placed: HashMap::new(),
        })
    }

    /// Makes the object of a file known: its frames are recognised, and walked by its table where that is placed. `will_follow` says
    /// whether a table may still come.
    pub(super) fn announce(
        &mut self,
        programs: &mut Programs,
        file: FileKey,
        object: ObjectId,
        will_follow: bool,
    ) -> Result<(), KernelError> {
        if let Some(placed) = self.placed.get_mut(&object) {
            placed.files.push(file);
            return programs.set_file(file, placed.entry);
        }
        programs.set_file(file, FileEntry::without_table(object.number(), will_follow))
    }

    /// Places the table of an object, which has rows, and makes it known for its files.
    pub(super) fn place(
        &mut self,
        programs: &mut Programs,
        files: &[FileKey],
        object: ObjectId,
        table: &Table,
    ) -> Result<Placed, KernelError> {
        let (Some(first), Some(last)) = (table.pages().first(), table.pages().last()) else {
            return Ok(Placed::Whole);
        };
        let pages = last.number - first.number + 1;
        let Ok(index) = self.free_pages.allocate_range(pages) else { return Ok(Placed::NoMemory) };
        let entry = FileEntry {
            object: object.number(),
            first_page: index.start,
            pages,
            base_page: first.number,
            seal: 0,
        };
        let mut placed = PlacedTable { files: files.to_vec(), entry, rows: Vec::new() };
        index.clone().for_each(|page| self.pages.store(page as usize, 0));
        for &page in table.pages() {
            let Some(rows) = self.place_rows(table.rows(page))? else {
                self.free(placed);
                return Ok(Placed::NoMemory);
            };
            let word = RowPage::new(rows.chunk as u16, rows.rows.start, rows.rows.end - rows.rows.start);
            self.pages.store((index.start + page.number - first.number) as usize, word.0);
            placed.rows.push(rows);
        }
        files.iter().try_for_each(|&file| programs.set_file(file, entry))?;
        if let Some(former) = self.placed.insert(object, placed) {
            wait_for_running_programs();
            self.free(former);
        }
        Ok(Placed::Whole)
    }

    /// Makes room ahead for tables that will have this many rows together.
    pub(super) fn expect_rows(&mut self, rows: usize) {
        self.chunks.make_ready(rows);
    }

    /// Takes the tables of these objects out of the maps, as if they were still to come.
    pub(super) fn withdraw(
        &mut self,
        programs: &mut Programs,
        objects: &[ObjectId],
    ) -> Result<(), KernelError> {
        let withdrawn: Vec<PlacedTable> =
            objects.iter().filter_map(|object| self.placed.remove(object)).collect();
        for PlacedTable { files, entry, .. } in &withdrawn {
            let without = FileEntry::without_table(entry.object, true);
            files.iter().try_for_each(|&file| programs.set_file(file, without))?;
        }
        // A sample may have read an entry just before.
        wait_for_running_programs();
        withdrawn.into_iter().for_each(|placed| self.free(placed));
        Ok(())
    }

    /// Bytes that rows take in the kernel.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.chunks.count()) * CHUNK_BYTES
    }

    /// Rows that there is room for, in pieces.
    pub(super) fn free_rows(&self) -> usize {
        self.chunks.free_up_to_limit()
    }

    /// Gives back the room of a table that no sample can see.
    fn free(&mut self, PlacedTable { entry, rows, .. }: PlacedTable) {
        self.free_pages.free_range(entry.first_page..entry.first_page + entry.pages);
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
