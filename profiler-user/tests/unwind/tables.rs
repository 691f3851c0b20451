//! A compiled table as the search sees it.

use bpfprof::unwind::Table;
use profiler_common::mapping::FileEntry;
use profiler_common::unwind::row::{Row, RowPage};
use profiler_common::unwind::search::UnwindTables;

/// One chunk for each page, which is enough for 4 GiB of code.
pub(crate) struct TableInMemory {
    base_page: u32,
    pages: Vec<Vec<Row>>,
}

impl TableInMemory {
    pub(crate) fn new(table: &Table) -> Self {
        let base_page = table.pages().first().map_or(0, |page| page.number);
        let mut pages = Vec::new();
        for &page in table.pages() {
            pages.resize((page.number - base_page) as usize, Vec::new());
            pages.push(table.rows(page).to_vec());
        }
        assert!(pages.len() <= usize::from(u16::MAX), "{} pages", pages.len());
        Self { base_page, pages }
    }

    pub(crate) fn file_entry(&self) -> FileEntry {
        FileEntry {
            object: 0,
            first_page: 0,
            pages: self.pages.len() as u32,
            base_page: self.base_page,
            seal: 0,
        }
    }
}

impl UnwindTables for TableInMemory {
    type Chunk = Vec<Row>;

    fn page(&self, index: u32) -> Option<RowPage> {
        let rows = self.pages.get(index as usize)?;
        Some(RowPage::new(index as u16, 0, rows.len() as u32))
    }

    fn chunk(&self, number: u32) -> Option<&Vec<Row>> {
        self.pages.get(number as usize)
    }

    fn row(chunk: &Vec<Row>, index: u32) -> Option<Row> {
        chunk.get(index as usize).copied()
    }
}
