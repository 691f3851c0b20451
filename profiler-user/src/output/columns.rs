//! Columns of text, side by side, as wide as what is in them and as the terminal allows.

use std::io::{self, Write};

/// A column.
pub(super) struct Column {
    head: String,
    cells: Vec<String>,
    kind: Kind,
    /// Whether it is left out first where there is too little room.
    is_dispensable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// To the right of the column.
    Number,
    /// To the left of the column.
    Text,
    /// As text, and cut where there is too little room.
    Elastic,
}

/// Widest elastic column; longer cells push the next ones to the right.
const MOST_ELASTIC: usize = 60;

/// An elastic column is not cut below this.
const LEAST_ELASTIC: usize = 24;

/// Between two columns.
const GAP: usize = 2;

impl Column {
    /// A column of numbers.
    pub(super) fn number(head: &str, cells: impl Iterator<Item = String>) -> Self {
        Self::new(head, cells, Kind::Number)
    }

    /// A column of text.
    pub(super) fn text(head: &str, cells: impl Iterator<Item = String>) -> Self {
        Self::new(head, cells, Kind::Text)
    }

    /// A column of text that is cut where there is too little room.
    pub(super) fn elastic(head: &str, cells: impl Iterator<Item = String>) -> Self {
        Self::new(head, cells, Kind::Elastic)
    }

    fn new(head: &str, cells: impl Iterator<Item = String>, kind: Kind) -> Self {
        Self { head: head.into(), cells: cells.collect(), kind, is_dispensable: false }
    }

    /// The column, left out first where there is too little room.
    pub(super) fn dispensable(self) -> Self {
        Self { is_dispensable: true, ..self }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.head).chain(&self.cells)
    }

    fn width(&self) -> usize {
        let widest = self.lines().map(|cell| cell.chars().count()).max().unwrap_or(0);
        if self.kind == Kind::Elastic { widest.min(MOST_ELASTIC) } else { widest }
    }
}

/// Columns from left to right, all with the same number of cells.
#[derive(Default)]
pub(super) struct Columns(Vec<Column>);

impl Columns {
    /// Adds columns.
    pub(super) fn extend(&mut self, columns: impl IntoIterator<Item = Column>) {
        self.0.extend(columns);
    }

    /// Writes heads and cells, in lines of at most `width` characters.
    pub(super) fn write(mut self, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
        if let Some(width) = width {
            self.fit(width);
        }
        let widths: Vec<usize> = self.0.iter().map(Column::width).collect();
        for line in 0..self.0.first().map_or(0, |column| column.cells.len() + 1) {
            let cells = self.0.iter().zip(&widths).map(|(column, &width)| {
                let cell = column.lines().nth(line).map_or("", String::as_str);
                match column.kind {
                    Kind::Number => format!("{cell:>width$}"),
                    Kind::Text | Kind::Elastic => format!("{cell:<width$}"),
                }
            });
            let text = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            let text: String = text.chars().take(width.unwrap_or(usize::MAX)).collect();
            writeln!(to, "{}", text.trim_end())?;
        }
        Ok(())
    }

    /// Leaves out what is least needed, then text behind the elastic column from the right, and cuts the elastic column to what is left.
    fn fit(&mut self, width: usize) {
        while self.excess(width) > 0
            && let Some(last) = self.0.iter().rposition(|column| column.is_dispensable)
        {
            self.0.remove(last);
        }
        while self.room(width) < LEAST_ELASTIC && self.0.last().is_some_and(|last| last.kind == Kind::Text) {
            self.0.pop();
        }
        let room = self.room(width).max(LEAST_ELASTIC);
        if let Some(elastic) = self.0.iter_mut().find(|column| column.kind == Kind::Elastic) {
            for cell in &mut elastic.cells {
                *cell = shortened(cell, room);
            }
        }
    }

    /// What the others leave for the elastic column; all that it wants where that is less, or where there is none.
    fn room(&self, width: usize) -> usize {
        let elastic = self.0.iter().find(|column| column.kind == Kind::Elastic);
        elastic.map_or(LEAST_ELASTIC, |elastic| {
            let wanted = elastic.width();
            // A short column that fits is no reason to leave others out.
            if self.excess(width) == 0 {
                wanted.max(LEAST_ELASTIC)
            } else {
                wanted.saturating_sub(self.excess(width))
            }
        })
    }

    /// Characters by which the lines are too long.
    fn excess(&self, width: usize) -> usize {
        let all: usize = self.0.iter().map(|column| column.width() + GAP).sum();
        all.saturating_sub(GAP + width)
    }
}

/// The text, its middle left out where it is longer than `room`: names of functions differ at both ends.
fn shortened(text: &str, room: usize) -> String {
    let len = text.chars().count();
    if len <= room {
        return text.into();
    }
    let (head, tail) = (room / 2, room - room / 2 - 1);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(len - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: Option<usize>) -> String {
        let mut columns = Columns::default();
        let name = "core::slice::sort::unstable::quicksort::quicksort";
        let cells = |text: &str| std::iter::once(text.to_string());
        columns.extend([
            Column::number("IPC", cells("0.25")),
            Column::number("95 %", cells("0.20–0.30")).dispensable(),
            Column::elastic("function", cells(name)),
            Column::text("object", cells("app")),
        ]);
        let mut text = Vec::new();
        columns.write(width, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_least_needed_yields_first() {
        assert!(
            written(None)
                .ends_with("0.25  0.20–0.30  core::slice::sort::unstable::quicksort::quicksort  app\n")
        );
        assert!(
            written(Some(65)).ends_with("0.25  core::slice::sort::unstable::quicksort::quicksort  app\n")
        );
        assert!(
            written(Some(44)).ends_with("0.25  core::slice::so…ort::quicksort  app\n"),
            "{}",
            written(Some(44))
        );
        assert!(written(Some(33)).ends_with("0.25  core::slice::…rt::quicksort\n"), "{}", written(Some(33)));
        assert!(written(Some(20)).lines().all(|line| line.chars().count() <= 20));
    }
}
