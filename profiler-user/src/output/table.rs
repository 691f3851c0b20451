//! The table of functions as text.

use std::io::{self, Write};

use super::text::{printable, thousands};
use crate::profile::{By, EventId, Profile, Table};

/// How much to print.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// What they stand for.
    pub by: By,
    /// Rows at most.
    pub rows: usize,
    /// Columns of the terminal; longer lines are cut. `None` to cut nothing.
    pub width: Option<usize>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { by: By::Function, rows: 30, width: None }
    }
}

/// Widest column for function names; longer ones push the object to the right.
const NAME_COLUMN: usize = 60;

/// Writes the rows with the largest self weight.
///
/// # Errors
///
/// Those of `to`.
pub fn write_table(profile: &Profile, options: TableOptions, to: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(profile, options.by);
    let rows: Vec<[String; 6]> = table
        .rows
        .iter()
        .take(options.rows)
        .map(|row| {
            let (own, total) = (&row.own[0], &row.total[0]);
            let own_share = table.share(EventId::MAIN, own);
            let share = |share: Option<f64>| {
                share.map_or_else(|| "–".into(), |share| format!("{:.2}", share * 100.0))
            };
            let interval = |low, high| format!("{:.1}–{:.1}", low * 100.0, high * 100.0);
            [
                share(own_share.map(|own| own.value)),
                own_share.map_or_else(|| "–".into(), |own| interval(own.low, own.high)),
                share(table.share(EventId::MAIN, total).map(|total| total.value)),
                thousands(own.samples),
                printable(&row.label.name),
                printable(&row.label.object),
            ]
        })
        .collect();
    let heads =
        ["self %", "95 % interval", "total %", "samples", options.by.heading(), "object"].map(str::to_string);
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let cells = rows.iter().chain([&heads]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).min(NAME_COLUMN)
    });
    for row in [&heads].into_iter().chain(&rows) {
        let line = format_row(row, &widths);
        let line: String = line.chars().take(options.width.unwrap_or(usize::MAX)).collect();
        writeln!(to, "{}", line.trim_end())?;
    }
    let hidden = table.rows.len().saturating_sub(options.rows);
    if hidden > 0 {
        let weight: u64 = table.rows[options.rows..].iter().map(|row| row.own[0].weight).sum();
        let share = weight as f64 / table.whole[0].weight.max(1) as f64 * 100.0;
        let what = options.by.plural();
        writeln!(to, "… and {} more {what} with {share:.2} % of self", thousands(hidden as u64))?;
    }
    Ok(())
}

/// Numbers to the right of their columns, names to the left.
fn format_row(row: &[String; 6], widths: &[usize; 6]) -> String {
    let [own, interval, total, samples, function, object] = row;
    let [w0, w1, w2, w3, w4, _] = *widths;
    format!("{own:>w0$}  {interval:>w1$}  {total:>w2$}  {samples:>w3$}  {function:<w4$}  {object}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn table(rows: usize, width: Option<usize>) -> String {
        let mut text = Vec::new();
        let profile = profile(&[("main;leaf", 75, 75), ("main;other", 24, 24), ("main", 1, 1)]);
        write_table(&profile, TableOptions { by: By::Function, rows, width }, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            table(10, None),
            "self %  95 % interval  total %  samples  function  object\n\
             \u{20}75.00      65.7–82.5    75.00       75  leaf      app\n\
             \u{20}24.00      16.7–33.2    24.00       24  other     app\n\
             \u{20} 1.00        0.2–5.4   100.00        1  main      app\n"
        );
    }

    #[test]
    fn what_is_not_shown_is_said() {
        assert!(table(1, None).ends_with("… and 2 more functions with 25.00 % of self\n"));
        assert!(table(9, Some(20)).lines().all(|line| line.chars().count() <= 20));
    }
}
