//! The table as text.

use std::io::{self, Write};

use super::columns::{Column, Columns};
use super::text::{DASH, measure, printable, range, thousands};
use crate::profile::metrics::{Metric, Reading, split_modifiers};
use crate::profile::statistics::Estimate;
use crate::profile::{By, EventId, Header, Line, LineId, Profile, Row, Sum, Table};

/// How much to print.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// What rows stand for.
    pub by: By,
    /// Metrics that get columns; `None` for all that the measured events are enough for.
    pub metrics: Option<Vec<&'static Metric>>,
    /// Rows at most.
    pub rows: usize,
    /// Columns of the terminal; what does not fit is left out or cut. `None` to cut nothing.
    pub width: Option<usize>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { by: By::Function, metrics: None, rows: 30, width: None }
    }
}

/// Writes the rows with the largest self weight.
///
/// # Errors
///
/// Those of `to`.
pub fn write_table(profile: &Profile, options: &TableOptions, to: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(profile, options.by);
    let shown: Vec<&Row> = table.rows.iter().take(options.rows).collect();
    let mut columns = Columns::default();
    columns.extend(shares(&table, &shown));
    let metrics = options.metrics.clone().unwrap_or_else(|| table.metrics());
    columns.extend(counts(&profile.header, &table, &metrics, &shown));
    for &metric in &metrics {
        columns.extend(values(&table, metric, &shown));
    }
    columns.extend(names(options.by, &shown));
    if options.by == By::Function {
        columns.extend(hottest_lines(profile, &table, &shown));
    }
    columns.extend(readings(&table, &shown));
    columns.write(options.width, to)?;
    let hidden = table.rows.len().saturating_sub(options.rows);
    if hidden > 0 {
        let weight: u64 = table.rows[options.rows..].iter().map(|row| row.own[0].weight).sum();
        let share = weight as f64 / table.whole[0].weight.max(1) as f64 * 100.0;
        let what = options.by.plural();
        writeln!(to, "… and {} more {what} with {share:.2} % of self", thousands(hidden as u64))?;
    }
    Ok(())
}

fn shares(table: &Table, rows: &[&Row]) -> [Column; 4] {
    let share = |sum: &Sum| table.share(EventId::MAIN, sum);
    let percent = |sum: &Sum| {
        table.part(EventId::MAIN, sum).map_or_else(|| DASH.into(), |part| format!("{:.2}", part * 100.0))
    };
    let interval = |share: Option<Estimate>| {
        let ends = |share: Estimate| format!("{:.1}–{:.1}", share.low * 100.0, share.high * 100.0);
        share.map_or_else(|| DASH.into(), ends)
    };
    [
        Column::number("self %", rows.iter().map(|row| percent(&row.own[0]))),
        Column::number("95 % interval", rows.iter().map(|row| interval(share(&row.own[0])))),
        Column::number("total %", rows.iter().map(|row| percent(&row.total[0]))),
        Column::number("samples", rows.iter().map(|row| thousands(row.own[0].samples))),
    ]
}

/// A column for each counter that no metric shows.
fn counts(header: &Header, table: &Table, metrics: &[&Metric], rows: &[&Row]) -> Vec<Column> {
    let in_metric = |event: &str| {
        let (name, _) = split_modifiers(event);
        metrics.iter().any(|metric| metric.numerator == name || metric.denominators.contains(&name))
    };
    let counters = header.events().skip(1).filter(|(_, event)| !in_metric(&event.name));
    counters
        .map(|(event, info)| {
            let count = |row: &&Row| {
                let count = table.count(event, &row.own[usize::from(event.0)]);
                count.map_or_else(|| DASH.into(), |count| thousands(count.value.round() as u64))
            };
            Column::number(&printable(&info.name), rows.iter().map(count))
        })
        .collect()
}

/// A metric: its values, and their intervals where there is room.
fn values(table: &Table, metric: &Metric, rows: &[&Row]) -> [Column; 2] {
    let values: Vec<Option<Estimate>> = rows.iter().map(|row| table.metric(metric, row)).collect();
    let cell = |text: fn(&Metric, &Estimate) -> String| {
        values
            .iter()
            .map(move |value| value.as_ref().map_or_else(|| DASH.into(), |value| text(metric, value)))
    };
    [
        Column::number(metric.title, cell(|metric, value| measure(metric.unit, value.value))),
        Column::number("95 %", cell(|metric, value| range(metric.unit, value))).dispensable(),
    ]
}

fn names(by: By, rows: &[&Row]) -> Vec<Column> {
    let name = Column::elastic(by.heading(), rows.iter().map(|row| printable(&row.label.name)));
    let object = Column::text("object", rows.iter().map(|row| printable(&row.label.object)));
    if rows.iter().all(|row| row.label.object.is_empty()) { vec![name] } else { vec![name, object] }
}

/// The line that takes most of each function itself, if one is known of any.
fn hottest_lines(profile: &Profile, table: &Table, rows: &[&Row]) -> Option<Column> {
    let line = |row: &&Row| table.hottest_line(profile, row);
    let text = |(line, part): (LineId, f64)| {
        let Line { file, number } = profile.line(line);
        format!("{}:{number} {:.0} %", printable(file_name(file)), part * 100.0)
    };
    let lines: Vec<Option<String>> = rows.iter().map(|row| line(row).map(text)).collect();
    let cells = lines.iter().map(|line| line.clone().unwrap_or_else(|| DASH.into()));
    lines.iter().any(Option::is_some).then(|| Column::text("hottest line", cells).dispensable())
}

/// The last part of a path, and the one before where the last says nothing.
fn file_name(path: &str) -> &str {
    let begin = |end: usize| path[..end].rfind('/').map_or(0, |at| at + 1);
    let name = begin(path.len());
    if &path[name..] == "mod.rs" && name > 0 { &path[begin(name - 1)..] } else { &path[name..] }
}

/// What the numbers say in words, if that can be said of any row.
fn readings(table: &Table, rows: &[&Row]) -> Option<Column> {
    let readings: Vec<Option<Reading>> = rows.iter().map(|row| table.reading(row)).collect();
    let words = readings.iter().map(|reading| reading.as_ref().map_or_else(String::new, ToString::to_string));
    readings.iter().any(Option::is_some).then(|| Column::text("reading", words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    fn table(rows: usize, width: Option<usize>) -> String {
        let mut text = Vec::new();
        let profile = profile(&[("main;leaf", 75, 75), ("main;other", 24, 24), ("main", 1, 1)]);
        write_table(&profile, &TableOptions { rows, width, ..TableOptions::default() }, &mut text).unwrap();
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

    #[test]
    fn metrics_have_columns_and_words() {
        let mut measured = profile(&[("main;fast", 400, 4_000_000), ("main;slow", 400, 4_000_000)]);
        measured.header.event.name = "cycles".into();
        let measured = with_counter(
            measured,
            "instructions",
            &[("main;fast", 400, 12_000_000), ("main;slow", 100, 1_200_000)],
        );
        let mut text = Vec::new();
        write_table(&measured, &TableOptions::default(), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "self %  95 % interval  total %  samples   IPC       95 %  function  object  reading\n\
             \u{20}50.00      46.5–53.5    50.00      400  3.00  2.61–3.45  fast      app     compute-bound\n\
             \u{20}50.00      46.5–53.5    50.00      400  0.30  0.24–0.37  slow      app     stalled\n\
             \u{20} 0.00        0.0–0.5   100.00        0     –          –  main      app     too few samples\n"
        );
    }

    #[test]
    fn counters_without_metric_are_counted() {
        let measured = with_counter(profile(&[("main;f", 3, 30)]), "mem:0x10:x", &[("main;g", 7, 7)]);
        let mut text = Vec::new();
        write_table(&measured, &TableOptions::default(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let cells = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split_whitespace().map(str::to_string).collect()
        };
        assert_eq!(
            (cells("self")[8].as_str(), cells(" g ")[4].as_str(), cells(" f ")[4].as_str()),
            ("mem:0x10:x", "7", "0")
        );
    }
}
