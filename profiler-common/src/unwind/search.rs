//! Finding the row for a place in an object.

use super::row::{ROW_PAGE_SHIFT, Row, RowPage};
use crate::mapping::FileEntry;

/// The compiled tables.
pub trait UnwindTables {
    /// A store of rows. All rows of a page are in one.
    type Chunk;

    /// A word of the page index.
    fn page(&self, index: u32) -> Option<RowPage>;

    /// A chunk of rows.
    fn chunk(&self, number: u32) -> Option<&Self::Chunk>;

    /// A row of a chunk.
    fn row(chunk: &Self::Chunk, index: u32) -> Option<Row>;

    /// 1 when `a <= b`, else 0, in a way that compiles to no branch.
    #[inline(always)]
    fn not_above(a: u32, b: u32) -> u32 {
        1 - (u64::from(b).wrapping_sub(u64::from(a)) >> 63) as u32
    }
}

/// Steps of a search: a page has at most 2¹⁶ places, and one row more for the rule it begins with.
const SEARCH_STEPS: u32 = 17;

/// The row in force at this offset of a file.
#[inline(always)]
pub fn find_row<T: UnwindTables>(file: &FileEntry, offset: u64, tables: &T) -> Row {
    let nothing = Row::NOTHING;
    let page = ((offset >> ROW_PAGE_SHIFT) as u32).wrapping_sub(file.base_page);
    if page >= file.pages {
        return nothing;
    }
    let Some(page) = tables.page(file.first_page + page) else { return nothing };
    let Some(chunk) = tables.chunk(page.chunk()) else { return nothing };
    let place = offset as u32 & 0xffff;
    // The last row that begins at or before the place is among the `len` from `first` on. Each step drops a half by arithmetic and not by
    // a branch, of which the kernel's verifier would follow both ways.
    let (mut first, mut len) = (page.first(), page.rows());
    for _ in 0..SEARCH_STEPS {
        if len <= 1 {
            break;
        }
        let half = len / 2;
        let Some(row) = T::row(chunk, first + half) else { return nothing };
        first += half * T::not_above(row.place(), place);
        len -= half;
    }
    match T::row(chunk, first) {
        Some(row) if len == 1 && row.place() <= place => row,
        _ => nothing,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::super::row::{Cfa, Rule};
    use super::*;

    struct OneChunk {
        pages: Vec<RowPage>,
        rows: Vec<Row>,
    }

    impl UnwindTables for OneChunk {
        type Chunk = Vec<Row>;

        fn page(&self, index: u32) -> Option<RowPage> {
            self.pages.get(index as usize).copied()
        }

        fn chunk(&self, number: u32) -> Option<&Vec<Row>> {
            (number == 7).then_some(&self.rows)
        }

        fn row(chunk: &Vec<Row>, index: u32) -> Option<Row> {
            chunk.get(index as usize).copied()
        }
    }

    #[test]
    fn every_place_finds_the_last_row_before_it() {
        for rows in [0, 1, 2, 3, 100, 65_536] {
            let stride = 65_536 / u64::max(rows, 1);
            let table = OneChunk {
                pages: [RowPage::new(7, 1, rows as u32)].into(),
                rows: std::iter::once(Row::new(0, Rule::only(Cfa::Root)))
                    .chain((0..rows).map(|n| Row::new(n * stride, Rule::only(Cfa::Sp(8 * (n as u32 + 1))))))
                    .collect(),
            };
            let file = FileEntry { object: 0, first_page: 0, pages: 1, base_page: 3, seal: 0 };
            for place in (0..65_536).step_by(997).chain([65_535]) {
                let expected = if rows == 0 {
                    Cfa::Nothing
                } else {
                    Cfa::Sp(8 * (u64::min(place / stride, rows - 1) as u32 + 1))
                };
                assert_eq!(
                    find_row(&file, 3 << 16 | place, &table).rule().cfa,
                    expected,
                    "{rows} rows, {place}"
                );
            }
            assert_eq!(find_row(&file, 2 << 16, &table), Row::NOTHING);
            assert_eq!(find_row(&file, 4 << 16, &table), Row::NOTHING);
        }
    }
}
