//! A compiled table: rows by page.

use profiler_common::unwind::row::{ROW_PAGE_SHIFT, Row, Rule};

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

    /// This table, and where it describes nothing, the other.
    pub(super) fn filled_by(&self, other: &Self) -> Self {
        let mut writer = Writer::default();
        let (mut ours, mut others) = (self.changes().peekable(), other.changes().peekable());
        let (mut rule, mut other_rule) = (NOTHING, NOTHING);
        while let Some(at) = [ours.peek(), others.peek()].into_iter().flatten().map(|(at, _)| *at).min() {
            rule = ours.next_if(|(next, _)| *next == at).map_or(rule, |(_, rule)| rule);
            other_rule = others.next_if(|(next, _)| *next == at).map_or(other_rule, |(_, rule)| rule);
            writer.push(at, if rule == NOTHING { other_rule } else { rule });
        }
        writer.finish().unwrap_or_default()
    }

    /// The file offset of each row, and its encoding without its place. The last row of each page that none follows says that nothing is described.
    fn changes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pages.iter().flat_map(|page| {
            let begin = u64::from(page.number) << ROW_PAGE_SHIFT;
            let rows = self.rows(*page).iter();
            rows.map(move |row| (begin + u64::from(row.place()), row.0 & !0xffff))
        })
    }

    /// Number of all rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }
}

/// Makes a table of rules.
#[derive(Debug)]
pub(super) enum TableBuilder {
    /// Of rules in the order of their places, as the index of an object gives them: rows are written at once, which takes a third of the memory
    /// and of its page faults.
    Ordered(Writer),
    /// Of rules in any order: file offset, and the row's encoding without its place.
    Collected(Vec<(u64, u64)>),
}

/// The encoding of a row that says that no function is described from here on; it sorts before any other at the same place.
const NOTHING: u64 = Row::NOTHING.0;

impl TableBuilder {
    /// For rules in order, with room for so many rows.
    pub(super) fn ordered(rows: usize) -> Self {
        Self::Ordered(Writer {
            table: Table { rows: Vec::with_capacity(rows), pages: Vec::new() },
            ..Writer::default()
        })
    }

    /// For rules in any order.
    pub(super) fn collecting() -> Self {
        Self::Collected(Vec::new())
    }

    /// A rule that holds from this place on.
    pub(super) fn begin(&mut self, offset: u64, rule: Rule) {
        self.push(offset, Row::new(0, rule.fitting()).0);
    }

    /// The end of a function.
    pub(super) fn end(&mut self, offset: u64) {
        self.push(offset, NOTHING);
    }

    /// Number of rules so far that say something new, or of all.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ordered(writer) => writer.table.rows.len(),
            Self::Collected(rules) => rules.len(),
        }
    }

    /// The table; `None` when rules that were to be in order were not.
    pub(super) fn build(self) -> Option<Table> {
        match self {
            Self::Ordered(writer) => writer.finish(),
            Self::Collected(mut rules) => {
                rules.sort_unstable();
                let mut writer = Writer::default();
                rules.into_iter().for_each(|(offset, rule)| writer.push(offset, rule));
                writer.finish()
            }
        }
    }

    fn push(&mut self, offset: u64, rule: u64) {
        match self {
            Self::Ordered(writer) => writer.push(offset, rule),
            Self::Collected(rules) => rules.push((offset, rule)),
        }
    }
}

/// Writes rules that come in order, drops what says nothing new, and groups by page.
#[derive(Debug, Default)]
pub(super) struct Writer {
    table: Table,
    /// The last rule: another at the same place may replace it.
    held: Option<(u64, u64)>,
    /// The rule of the last row.
    in_force: Option<u64>,
    is_disordered: bool,
}

impl Writer {
    fn push(&mut self, offset: u64, rule: u64) {
        match &mut self.held {
            // Where a function begins at the end of another, its rule is the greater.
            Some((at, held)) if *at == offset => *held = rule.max(*held),
            Some((at, _)) if *at > offset => self.is_disordered = true,
            _ => {
                self.write_held();
                self.held = Some((offset, rule));
            }
        }
    }

    fn finish(mut self) -> Option<Table> {
        self.write_held();
        (!self.is_disordered).then_some(self.table)
    }

    fn write_held(&mut self) {
        let Some((offset, rule)) = self.held.take() else { return };
        if self.in_force == Some(rule) {
            return;
        }
        let before = self.in_force.replace(rule).unwrap_or(NOTHING);
        let number = u32::try_from(offset >> ROW_PAGE_SHIFT).unwrap_or(u32::MAX);
        let (last, place) = (self.table.pages.last().map(|page| page.number), offset & 0xffff);
        if last != Some(number) {
            // Pages between need a row only where something is described.
            if let Some(last) = last.filter(|_| before != NOTHING) {
                (last + 1..number).for_each(|between| self.begin_page(between, Some(before)));
            }
            self.begin_page(number, Some(before).filter(|_| place != 0));
        }
        self.add_row(rule | place);
    }

    /// Begins a page with this rule, or with nothing when a row for its first place follows.
    fn begin_page(&mut self, number: u32, rule: Option<u64>) {
        let first = u32::try_from(self.table.rows.len()).unwrap_or(u32::MAX);
        self.table.pages.push(Page { number, first, rows: 0 });
        if let Some(rule) = rule {
            self.add_row(rule);
        }
    }

    fn add_row(&mut self, row: u64) {
        self.table.rows.push(Row(row));
        if let Some(page) = self.table.pages.last_mut() {
            page.rows += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use profiler_common::unwind::row::Cfa;

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
        let mut builder = TableBuilder::collecting();
        builder.begin(0x10, A);
        builder.end(0x40);
        builder.begin(0x40, B);
        builder.end(0x75);
        builder.begin(0x80, B);
        builder.end(0x90);
        assert_eq!(
            rows(&builder.build().unwrap()),
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
        let mut builder = TableBuilder::collecting();
        builder.begin(0x1_fff0, A);
        builder.end(0x4_0010);
        builder.begin(0x9_0000, B);
        builder.end(0x9_0100);
        let table = builder.build().unwrap();
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
        assert_eq!(TableBuilder::collecting().build().unwrap().row_count(), 0);
    }

    #[test]
    fn rules_in_order_make_the_same_table_at_once() {
        let mut random = 7u64;
        let mut next = |below: u64| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..200 {
            let (mut ordered, mut collected) = (TableBuilder::ordered(0), TableBuilder::collecting());
            let mut offset = 0;
            for _ in 0..next(60) {
                offset += [0, 8, 40, 0xfff0, 0x1_0000, 0x5_4321][next(6) as usize];
                let rule = [A, B, Rule::only(Cfa::Nothing)][next(3) as usize];
                ordered.begin(offset, rule);
                collected.begin(offset, rule);
            }
            let (ordered, collected) = (ordered.build().unwrap(), collected.build().unwrap());
            assert_eq!(ordered.to_words(), collected.to_words());
        }
    }

    #[test]
    fn a_table_is_filled_where_it_describes_nothing() {
        let table = |rules: &[(u64, Rule)]| {
            let mut builder = TableBuilder::collecting();
            rules.iter().for_each(|(at, rule)| builder.begin(*at, *rule));
            builder.build().unwrap()
        };
        let nothing = Rule::only(Cfa::Nothing);
        let unsupported = Rule::only(Cfa::Unsupported);
        let first = table(&[(0x10, A), (0x20, nothing), (0x40, unsupported), (0x50, nothing)]);
        let second = table(&[(0x8, B), (0x48, A), (0x58, nothing), (0x5_0000, B), (0x5_0010, nothing)]);
        let expected = [
            (0, Cfa::Nothing),
            (0x8, B.cfa),
            (0x10, A.cfa),
            (0x20, B.cfa),
            (0x40, Cfa::Unsupported),
            (0x50, A.cfa),
            (0x58, Cfa::Nothing),
            (0x5_0000, B.cfa),
            (0x5_0010, Cfa::Nothing),
        ];
        assert_eq!(rows(&first.filled_by(&second)), expected);
        assert_eq!(rows(&Table::default().filled_by(&first)), rows(&first));
        assert_eq!(rows(&first.filled_by(&Table::default())), rows(&first));
    }

    #[test]
    fn rules_out_of_order_are_told() {
        let mut builder = TableBuilder::ordered(2);
        builder.begin(0x40, A);
        builder.begin(0x10, B);
        assert!(builder.build().is_none());
    }
}
