//! What changed as JSON: schema 1.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::profile::Header;
use crate::profile::diff::{Basis, Cost, Diff, Mark, MetricChange, Row, SIGNIFICANT, Scale};
use crate::profile::statistics::{Difference, Estimate, Repeat};

/// Version of the document's form. It grows when a reader of the old form would misread the new one; added members do not count.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    before: &'a Header,
    after: &'a Header,
    normalised: bool,
    /// Which costs `difference`, `p`, `change` and `mark` are of: `self` or `total`.
    compared: Basis,
    comparisons: usize,
    significance: f64,
    /// Why nothing could be marked.
    too_short: Option<String>,
    /// Functions of which the runs are too short to tell.
    untold: usize,
    /// Functions whose total changed, where none changed itself.
    changed_totals: usize,
    functions: Vec<Function<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    object: &'a str,
    before: Side,
    after: Side,
    /// After less before of what is compared: shares, or weights over the run.
    difference: Option<Difference>,
    /// Corrected for the number of comparisons.
    p: Option<f64>,
    change: Option<f64>,
    mark: Option<Mark>,
    metrics: BTreeMap<&'static str, Metric>,
}

#[derive(Serialize)]
struct Side {
    #[serde(rename = "self")]
    own: Part,
    total: Part,
}

#[derive(Serialize)]
struct Part {
    samples: u64,
    weight: u64,
    share: f64,
}

#[derive(Serialize)]
struct Metric {
    before: Option<Estimate>,
    after: Option<Estimate>,
    difference: Option<Difference>,
    marked: bool,
}

impl From<Cost> for Side {
    fn from(cost: Cost) -> Self {
        let part = |sum: crate::profile::Sum, share| Part { samples: sum.samples, weight: sum.weight, share };
        Self { own: part(cost.own, cost.own_share), total: part(cost.total, cost.total_share) }
    }
}

impl From<&MetricChange> for Metric {
    fn from(change: &MetricChange) -> Self {
        let estimate = |run: Option<Repeat>| run.map(|run| run.estimate());
        Self {
            before: estimate(change.before),
            after: estimate(change.after),
            difference: change.difference,
            marked: change.is_marked,
        }
    }
}

/// Writes all functions in the order of the table.
///
/// # Errors
///
/// Those of `to`.
pub fn write_diff_json(diff: &Diff, before: &Header, after: &Header, to: &mut dyn Write) -> io::Result<()> {
    let function = |row: &'_ Row| -> BTreeMap<&'static str, Metric> {
        diff.metrics.iter().zip(&row.metrics).map(|(metric, change)| (metric.name, change.into())).collect()
    };
    let functions = diff.rows.iter().map(|row| Function {
        name: &row.name,
        object: &row.object,
        before: row.before.into(),
        after: row.after.into(),
        difference: row.difference,
        p: row.p,
        change: row.change,
        mark: row.mark,
        metrics: function(row),
    });
    let document = Document {
        schema: SCHEMA,
        before,
        after,
        normalised: diff.scale == Scale::Normalised,
        compared: diff.basis,
        comparisons: diff.comparisons,
        significance: SIGNIFICANT,
        too_short: diff.too_short.map(|too_short| too_short.to_string()),
        untold: diff.untold,
        changed_totals: diff.changed_totals,
        functions: functions.collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn the_documented_members_are_there() {
        let before = profile(&[("main;f", 75, 75), ("main;old", 25, 25)]);
        let after = profile(&[("main;f", 50, 50), ("main;new", 50, 50)]);
        let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
        let mut text = Vec::new();
        write_diff_json(&diff, &before.header, &after.header, &mut text).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&json["schema"], &json["normalised"]), (&1.into(), &true.into()));
        let new = &json["functions"][0];
        assert_eq!((&new["name"], &new["before"]["self"]["samples"]), (&"new".into(), &0.into()));
        assert_eq!((&new["after"]["self"]["share"], &new["mark"]), (&0.5.into(), &serde_json::Value::Null));
        assert!(json["too_short"].as_str().unwrap().contains("slices"));
    }
}
