//! The table of what changed.

use std::io::{self, Write};

use super::super::columns::{Column, Columns};
use super::super::text::{DASH, counted, printable, thousands};
use crate::profile::diff::{Basis, Diff, Mark, MetricChange, Row, SIGNIFICANT, Scale};

/// Writes the functions, what changed first, and what the marks mean.
///
/// # Errors
///
/// Those of `to`.
pub fn write_diff_table(
    diff: &Diff,
    rows: usize,
    width: Option<usize>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let heads = heads(diff);
    let lines: Vec<Vec<String>> = diff.rows.iter().take(rows).map(|row| cells(diff, row)).collect();
    let mut columns = Columns::default();
    columns.extend(heads.iter().enumerate().map(|(at, head)| {
        let cells = lines.iter().map(|line| line[at].clone());
        // The name of a function and its object are the last.
        match (heads.len() - at, head.as_str()) {
            (1, _) => Column::text(head, cells),
            (2, _) => Column::elastic(head, cells),
            (_, SAMPLES) => Column::number(head, cells).dispensable(),
            _ => Column::number(head, cells),
        }
    }));
    columns.write(width, to)?;
    let hidden = diff.rows.len().saturating_sub(rows);
    if hidden > 0 {
        writeln!(to, "… and {} more functions", thousands(hidden as u64))?;
    }
    writeln!(to, "{}", verdict(diff))
}

/// Head of the column that a narrow terminal goes without.
const SAMPLES: &str = "samples";

fn heads(diff: &Diff) -> Vec<String> {
    let what = match (diff.basis, diff.scale) {
        (Basis::Own, Scale::Normalised) => ["before %", "after %", "difference"],
        (Basis::Own, Scale::Absolute) => ["before", "after", "difference"],
        (Basis::Total, Scale::Normalised) => ["total before %", "total after %", "difference"],
        (Basis::Total, Scale::Absolute) => ["total before", "total after", "difference"],
    };
    let mut heads: Vec<String> = ["", "change"].into_iter().chain(what).map(str::to_owned).collect();
    heads.extend(["95 % interval", SAMPLES].map(str::to_owned));
    heads.extend(diff.metrics.iter().map(|metric| metric.title.to_owned()));
    heads.extend(["function", "object"].map(str::to_owned));
    heads
}

fn cells(diff: &Diff, row: &Row) -> Vec<String> {
    let mark = match row.mark {
        Some(Mark::Slower) => "▲",
        Some(Mark::Faster) => "▼",
        None => "",
    };
    let [(before, before_share), (after, after_share)] =
        [&row.before, &row.after].map(|cost| diff.basis.of(cost));
    let change = match row.change {
        _ if before.weight == 0 && after.weight == 0 => DASH.into(),
        None => "new".into(),
        Some(0.0) => "gone".into(),
        Some(change) => format!("×{change:.2}"),
    };
    let amount = |share: f64, weight: u64| match diff.scale {
        Scale::Normalised => format!("{:.2}", share * 100.0),
        Scale::Absolute => thousands(weight),
    };
    let signed = |value: f64| match diff.scale {
        Scale::Normalised => format!("{:+.2}", value * 100.0),
        Scale::Absolute => format!("{value:+.0}"),
    };
    let moved = match diff.scale {
        Scale::Normalised => after_share - before_share,
        Scale::Absolute => after.weight as f64 - before.weight as f64,
    };
    let interval = row.difference.map_or_else(
        || DASH.into(),
        |difference| format!("{} to {}", signed(difference.low), signed(difference.high)),
    );
    let mut cells = vec![
        mark.into(),
        change,
        amount(before_share, before.weight),
        amount(after_share, after.weight),
        signed(moved),
        interval,
        format!("{}→{}", thousands(before.samples), thousands(after.samples)),
    ];
    for number in 0..diff.metrics.len() {
        cells.push(row.metrics.get(number).map_or_else(|| DASH.into(), metric));
    }
    cells.extend([printable(&row.name), printable(&row.object)]);
    cells
}

fn metric(change: &MetricChange) -> String {
    let value = |run: Option<f64>| run.map_or_else(|| DASH.into(), |value| format!("{value:.3}"));
    let mark = if change.is_marked { "*" } else { "" };
    let (before, after) = (change.before.map(|run| run.value), change.after.map(|run| run.value));
    if before.is_none() && after.is_none() {
        return DASH.into();
    }
    format!("{}→{}{mark}", value(before), value(after))
}

fn verdict(diff: &Diff) -> String {
    if let Some(too_short) = &diff.too_short {
        return format!("nothing can be marked: {too_short}");
    }
    let totals = match (diff.basis, diff.changed_totals) {
        (Basis::Total, _) | (_, 0) => String::new(),
        (Basis::Own, changed) => format!(
            "\nwith all they call, {} changed although none changed itself: --total shows them",
            counted(changed as u64, "function")
        ),
    };
    let marked = diff.rows.iter().filter(|row| row.mark.is_some()).count();
    let rest = match diff.scale {
        Scale::Normalised => {
            "; change is against the functions that are not marked, since where one share grows the others shrink"
        }
        Scale::Absolute => "",
    };
    let untold = match diff.untold {
        0 => String::new(),
        untold => format!("; of {} the runs are too short to tell", counted(untold as u64, "function")),
    };
    format!(
        "▲ slower, ▼ faster, * a metric that changed: {marked} of {} marked at {} % in {} comparisons{untold}{rest}{totals}",
        thousands(diff.rows.len() as u64),
        SIGNIFICANT * 100.0,
        thousands(diff.comparisons as u64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn both_sides_and_what_they_lack_are_shown() {
        let before = profile(&[("main;f", 75, 75), ("main;old", 25, 25)]);
        let after = profile(&[("main;f", 50, 50), ("main;new\x1b", 50, 50)]);
        let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
        let mut text = Vec::new();
        write_diff_table(&diff, 3, None, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert!(lines[1].contains("new\u{fffd}") && lines[1].contains("+50.00"), "{text}");
        assert!(
            text.contains("75→50") && text.contains("gone") && text.contains("1 more functions"),
            "{text}"
        );
        assert!(text.contains("nothing can be marked: measured in too few"), "{text}");
    }
}
