//! The table and the header as JSON: schema 1.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use crate::profile::statistics::{Estimate, Repeat};
use crate::profile::{
    By, EventId, Header, Line, Profile, Repeats as TableRepeats, Row as TableRow, RowRepeat, Sum, Table,
};

/// Version of the document's form. It grows when a reader of the old form would misread the new one; added members do not count.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    header: &'a Header,
    /// All samples, by event.
    whole: BTreeMap<&'a str, Amount>,
    /// The rows, under what they stand for in the plural.
    #[serde(flatten)]
    rows: BTreeMap<&'static str, Vec<Row<'a>>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    object: &'a str,
    /// Other names of a function, and the names of its parts and copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    also: Option<&'a BTreeSet<String>>,
    #[serde(rename = "self")]
    own: Part,
    total: Part,
    /// What falls on the row alone, by event.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counters: BTreeMap<&'a str, Count>,
    /// Ratios of that, by metric, with the 95 % interval for this run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<&'static str, Option<Estimate>>,
    /// What the numbers say in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    /// The source line that takes most of a function itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    hottest_line: Option<HottestLine<'a>>,
    /// What other runs would give; absent where the run is too short to say.
    repeat: Repeats,
}

#[derive(Serialize)]
struct HottestLine<'a> {
    file: &'a str,
    line: u32,
    /// Of the function's own weight.
    share: f64,
}

#[derive(Serialize)]
struct Amount {
    samples: u64,
    weight: u64,
    /// Number of equally weighted samples that tell as much.
    effective_samples: f64,
}

#[derive(Serialize)]
struct Part {
    #[serde(flatten)]
    amount: Amount,
    /// Of the weight of all samples, with the 95 % interval for this run.
    share: Option<Estimate>,
}

#[derive(Serialize)]
struct Count {
    samples: u64,
    /// Number of equally weighted samples that tell as much.
    effective_samples: f64,
    count: u64,
    /// The 95 % interval for this run; both ends are the count where every occurrence was a sample.
    low: Option<f64>,
    high: Option<f64>,
}

/// Values with their 95 % interval for other runs, the variance between blocks of time, and the number and length of the blocks.
#[derive(Serialize)]
struct Repeats {
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<Repeat>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<&'static str, Repeat>,
}

/// Writes the document, rows by descending self weight.
pub(super) fn write(profile: &Profile, by: By, to: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(profile, by);
    let repeats = table.repeats(profile);
    let rows = table.rows.iter().map(|row| Row {
        also: names(profile, row).filter(|_| by == By::Function),
        hottest_line: hottest_line(profile, &table, row).filter(|_| by == By::Function),
        ..Row::new(profile, &table, &repeats, row)
    });
    let rows = BTreeMap::from([(by.plural(), rows.collect())]);
    let events = profile.header.events().zip(&table.whole);
    let whole = events.map(|((_, event), sum)| (event.name.as_str(), amount(sum))).collect();
    let document = Document { schema: SCHEMA, header: &profile.header, whole, rows };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

fn amount(sum: &Sum) -> Amount {
    Amount { samples: sum.samples, weight: sum.weight, effective_samples: sum.effective_samples() }
}

impl<'a> Row<'a> {
    fn new(profile: &'a Profile, table: &Table, repeats: &TableRepeats<'_>, row: &'a TableRow) -> Self {
        let part = |sum: &Sum| Part { amount: amount(sum), share: table.share(EventId::MAIN, sum) };
        let metrics = table.metrics();
        let RowRepeat { share, metrics: repeated } = repeats.of(row);
        Self {
            name: &row.label.name,
            object: &row.label.object,
            also: None,
            own: part(&row.own[0]),
            total: part(&row.total[0]),
            counters: counts(profile, table, row),
            repeat: Repeats {
                share,
                metrics: repeated.into_iter().map(|(metric, repeat)| (metric.name, repeat)).collect(),
            },
            metrics: metrics.iter().map(|metric| (metric.name, table.metric(metric, row))).collect(),
            reading: table.reading(row).map(|reading| reading.to_string()),
            hottest_line: None,
        }
    }
}

fn names<'a>(profile: &'a Profile, row: &TableRow) -> Option<&'a BTreeSet<String>> {
    profile.header.names.also.get(&*row.label.object)?.get(&*row.label.name)
}

fn hottest_line<'a>(profile: &'a Profile, table: &Table, row: &TableRow) -> Option<HottestLine<'a>> {
    let (line, share) = table.hottest_line(profile, row)?;
    let Line { file, number } = profile.line(line);
    Some(HottestLine { file, line: *number, share })
}

fn counts<'a>(profile: &'a Profile, table: &Table, row: &TableRow) -> BTreeMap<&'a str, Count> {
    let counters = profile.header.events().skip(1).map(|(event, info)| {
        let sum = &row.own[usize::from(event.0)];
        let interval = table.count(event, sum);
        let count = Count {
            samples: sum.samples,
            effective_samples: sum.effective_samples(),
            count: sum.weight,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        };
        (info.name.as_str(), count)
    });
    counters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn the_documented_members_are_there() {
        let mut text = Vec::new();
        write(&profile(&[("main;f", 3, 30), ("main", 1, 10)]), By::Function, &mut text).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["header"]["event"]["name"], "cpu-clock");
        let first = &json["functions"][0];
        assert_eq!((&first["name"], &first["object"]), (&"f".into(), &"app".into()));
        assert_eq!((&first["self"]["samples"], &first["self"]["weight"]), (&3.into(), &30.into()));
        assert_eq!(json["functions"][1]["total"]["weight"], 40);
        assert!(first["self"]["share"]["low"].as_f64().unwrap() < 0.75);
    }
}
