//! Unwind tables in the kernel's maps, filled through memory.

use std::os::fd::AsFd as _;

use aya::maps::{Array, Map, MapData, MapError};
use aya_obj::generated::{BPF_F_INNER_MAP, BPF_F_MMAPABLE, bpf_map_type::BPF_MAP_TYPE_ARRAY};
use profiler_common::limits::{CHUNK_ROWS, MAX_CHUNKS, MAX_ROW_PAGES};
use profiler_common::mapping::{FileEntry, FileKey};
use profiler_common::unwind::row::RowPage;

use super::KernelError;
use super::programs::Programs;
use super::words::Words;
use crate::processes::ObjectId;
use crate::unwind::{Page, Table};

/// The tables of all objects, one for each object however many processes map it.
pub(super) struct UnwindTables {
    pages: Words,
    pages_used: u32,
    chunks: Vec<Chunk>,
    /// Chunks that memory is granted for.
    chunk_limit: u32,
}

struct Chunk {
    rows: Words,
    used: u32,
    /// Keeps the map: the kernel's place for it holds no reference that userspace can map.
    _map: Array<MapData, u64>,
}

/// Where the tables of an object went.
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
    pub(super) fn new(programs: &Programs, bytes: u64) -> Result<Self, KernelError> {
        let pages = Words::map(programs.array("ROW_PAGES")?, MAX_ROW_PAGES as usize);
        Ok(Self {
            pages: pages.map_err(KernelError::system("mmap of a BPF map"))?,
            pages_used: 0,
            chunks: Vec::new(),
            chunk_limit: u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(MAX_CHUNKS).min(MAX_CHUNKS),
        })
    }

    /// Makes the object of a file known, without a table: its frames are recognised. `will_follow` says whether a table may still come.
    pub(super) fn announce(
        programs: &mut Programs,
        file: FileKey,
        object: ObjectId,
        will_follow: bool,
    ) -> Result<(), KernelError> {
        let base_page = if will_follow { 0 } else { FileEntry::NO_RULES };
        programs.set_file(file, FileEntry { object: object.number(), first_page: 0, pages: 0, base_page })
    }

    /// Places the table of an object and makes it known for its file.
    pub(super) fn place(
        &mut self,
        programs: &mut Programs,
        file: FileKey,
        object: ObjectId,
        table: &Table,
    ) -> Result<Placed, KernelError> {
        let (Some(first), Some(last)) = (table.pages().first(), table.pages().last()) else {
            return Self::announce(programs, file, object, false).map(|()| Placed::Whole);
        };
        let pages = last.number - first.number + 1;
        let first_page = self.pages_used;
        if pages > MAX_ROW_PAGES - first_page {
            return Ok(Placed::NoMemory);
        }
        for &page in table.pages() {
            let Some(placed) = self.place_page(programs, table, page)? else { return Ok(Placed::NoMemory) };
            self.pages.store((first_page + page.number - first.number) as usize, placed.0);
        }
        self.pages_used += pages;
        let entry = FileEntry { object: object.number(), first_page, pages, base_page: first.number };
        programs.set_file(file, entry)?;
        Ok(Placed::Whole)
    }

    /// Bytes that rows take in the kernel.
    pub(super) fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES
    }

    fn place_page(
        &mut self,
        programs: &mut Programs,
        table: &Table,
        page: Page,
    ) -> Result<Option<RowPage>, KernelError> {
        let rows = table.rows(page);
        // A page has at most one row for each of its places and one more, so it fits.
        let len = rows.len() as u32;
        if self.chunks.last().is_none_or(|chunk| CHUNK_ROWS - chunk.used < len)
            && !self.add_chunk(programs)?
        {
            return Ok(None);
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let first = chunk.used;
        for (at, row) in rows.iter().enumerate() {
            chunk.rows.store(first as usize + at, row.0);
        }
        chunk.used += len;
        Ok(Some(RowPage::new(number as u16, first, len)))
    }

    fn add_chunk(&mut self, programs: &mut Programs) -> Result<bool, KernelError> {
        let number = self.chunks.len() as u32;
        if number >= self.chunk_limit {
            return Ok(false);
        }
        let no_memory =
            |error: MapError| KernelError::Load { cause: format!("no memory for unwind tables: {error}") };
        let flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
        let definition = aya_obj::Map::new_from_params(BPF_MAP_TYPE_ARRAY as u32, 4, 8, CHUNK_ROWS, flags);
        let data = MapData::create(definition, "unwind_rows", None).map_err(no_memory)?;
        let rows = Words::map(data.fd().as_fd(), CHUNK_ROWS as usize);
        let rows = rows.map_err(KernelError::system("mmap of a BPF map"))?;
        let map = Array::try_from(Map::Array(data)).map_err(no_memory)?;
        programs.set_row_chunk(number, &map)?;
        self.chunks.push(Chunk { rows, used: 0, _map: map });
        Ok(true)
    }
}
