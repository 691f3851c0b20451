//! A compiled table: rows by page.

use profiler_common::unwind::row::{Cfa, ROW_PAGE_SHIFT, Row, Rule};

/// The rows of an object, in the order of their places in its file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    pages: Vec<Page>,
}

/// A page of 64 KiB of the file that has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number: file offset ÷ 64 KiB.
    pub number: u32,
    first: u32,
    rows: u32,
}

impl Table {
    /// Its pages in ascending order. Between them there may be pages without rows.
    #[must_use]
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// The rows of a page. The first one is at its beginning.
    #[must_use]
    pub fn rows(&self, page: Page) -> &[Row] {
        let first = page.first as usize;
        &self.rows[first..first + page.rows as usize]
    }

    /// The table as words, for [`Self::from_words`].
    #[must_use]
    pub(super) fn to_words(&self) -> Vec<u64> {
        let pages = self
            .pages
            .iter()
            .flat_map(|page| [u64::from(page.number) << 32 | u64::from(page.first), page.rows.into()]);
        let rows = self.rows.iter().map(|row| row.0);
        std::iter::once(self.pages.len() as u64).chain(pages).chain(rows).collect()
    }

    /// The table that these words stand for; `None` when its pages do not fit its rows.
    pub(super) fn from_words(words: &[u64]) -> Option<Self> {
        let (&pages, words) = words.split_first()?;
        let (pages, rows) = words.split_at_checked(usize::try_from(pages).ok()?.checked_mul(2)?)?;
        let page = |words: &[u64]| {
            let page = Page {
                number: (words[0] >> 32) as u32,
                first: words[0] as u32,
                rows: u32::try_from(words[1]).ok()?,
            };
            (u64::from(page.first) + u64::from(page.rows) <= rows.len() as u64).then_some(page)
        };
        let pages: Vec<Page> = pages.chunks_exact(2).map(page).collect::<Option<_>>()?;
        pages
            .is_sorted_by(|a, b| a.number < b.number)
            .then(|| Self { rows: rows.iter().copied().map(Row).collect(), pages })
    }

    /// Number of all rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }
}

/// Gathers rules in any order.
#[derive(Debug, Default)]
pub(super) struct TableBuilder {
    /// File offset, and the row's encoding without its place.
    rules: Vec<(u64, u64)>,
}

/// The encoding of a row that says that no function is described from here on; it sorts before any other at the same place.
const NOTHING: u64 = Row::new(0, Rule::only(Cfa::Nothing)).0;

impl TableBuilder {
    /// With room for this many rules.
    pub(super) fn with_capacity(rules: usize) -> Self {
        Self { rules: Vec::with_capacity(rules) }
    }

    /// A rule that holds from this place on.
    pub(super) fn begin(&mut self, offset: u64, rule: Rule) {
        self.rules.push((offset, Row::new(0, rule.fitting()).0));
    }

    /// The end of a function.
    pub(super) fn end(&mut self, offset: u64) {
        self.rules.push((offset, NOTHING));
    }

    /// Number of rules so far.
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Sorts, drops what says nothing new, and groups by page.
    pub(super) fn build(mut self) -> Table {
        // The index of an object is in order as a rule, and then so are the rules.
        self.rules.sort_unstable();
        // The last one at a place holds.
        self.rules.dedup_by(|later, kept| {
            let replaces = later.0 == kept.0;
            if replaces {
                kept.1 = later.1;
            }
            replaces
        });
        self.rules.dedup_by_key(|(_, rule)| *rule);
        group(&self.rules)
    }
}

fn group(rules: &[(u64, u64)]) -> Table {
    let mut table = Table::default();
    let mut in_force = NOTHING;
    let mut rest = rules;
    let mut number = rest.first().map_or(0, |(offset, _)| offset >> ROW_PAGE_SHIFT);
    while !rest.is_empty() {
        let in_page = rest.partition_point(|(offset, _)| offset >> ROW_PAGE_SHIFT <= number);
        let (page, later) = rest.split_at(in_page);
        if page.is_empty() && in_force == NOTHING {
            // Nothing is described up to the next rule.
            number = later.first().map_or(number, |(offset, _)| offset >> ROW_PAGE_SHIFT);
            continue;
        }
        let first = table.rows.len();
        if page.first().is_none_or(|(offset, _)| offset & 0xffff != 0) {
            table.rows.push(Row(in_force));
        }
        table.rows.extend(page.iter().map(|(offset, rule)| Row(rule | offset & 0xffff)));
        in_force = page.last().map_or(in_force, |(_, rule)| *rule);
        let index = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        table.pages.push(Page {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            first: index(first),
            rows: index(table.rows.len() - first),
        });
        number += 1;
        rest = later;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Rule = Rule::only(Cfa::Sp(8));
    const B: Rule = Rule::only(Cfa::Sp(16));

    fn rows(table: &Table) -> Vec<(u64, Cfa)> {
        let place = |page: &Page, row: &Row| (u64::from(page.number) << 16) + u64::from(row.place());
        let pages = table.pages().iter();
        pages
            .flat_map(|page| table.rows(*page).iter().map(move |row| (place(page, row), row.rule().cfa)))
            .collect()
    }

    #[test]
    fn neighbours_share_no_end_and_repetition_costs_nothing() {
        let mut builder = TableBuilder::default();
        builder.begin(0x10, A);
        builder.end(0x40);
        builder.begin(0x40, B);
        builder.end(0x75);
        builder.begin(0x80, B);
        builder.end(0x90);
        assert_eq!(
            rows(&builder.build()),
            [
                (0, Cfa::Nothing),
                (0x10, Cfa::Sp(8)),
                (0x40, Cfa::Sp(16)),
                (0x75, Cfa::Nothing),
                (0x80, Cfa::Sp(16)),
                (0x90, Cfa::Nothing),
            ]
        );
    }

    #[test]
    fn every_page_begins_with_the_rule_in_force() {
        let mut builder = TableBuilder::default();
        builder.begin(0x1_fff0, A);
        builder.end(0x4_0010);
        builder.begin(0x9_0000, B);
        builder.end(0x9_0100);
        let table = builder.build();
        let numbers: Vec<u32> = table.pages().iter().map(|page| page.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 9]);
        assert_eq!(
            rows(&table),
            [
                (0x1_0000, Cfa::Nothing),
                (0x1_fff0, Cfa::Sp(8)),
                (0x2_0000, Cfa::Sp(8)),
                (0x3_0000, Cfa::Sp(8)),
                (0x4_0000, Cfa::Sp(8)),
                (0x4_0010, Cfa::Nothing),
                (0x9_0000, Cfa::Sp(16)),
                (0x9_0100, Cfa::Nothing),
            ]
        );
    }

    #[test]
    fn an_object_without_functions_has_no_rows() {
        assert_eq!(TableBuilder::default().build().row_count(), 0);
    }
}
