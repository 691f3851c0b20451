//! The table and the header as JSON: schema 1.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::profile::statistics::Estimate;
use crate::profile::{By, EventId, Header, Profile, Sum, Table};

/// Version of the document's form. It grows when a reader of the old form would misread the new one; added members do not count.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    header: &'a Header,
    /// The rows, under what they stand for in the plural.
    #[serde(flatten)]
    rows: BTreeMap<&'static str, Vec<Row<'a>>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    object: &'a str,
    #[serde(rename = "self")]
    own: Part,
    total: Part,
}

#[derive(Serialize)]
struct Part {
    samples: u64,
    weight: u64,
    /// Of the weight of all samples, with the 95 % interval for this run.
    share: Option<Estimate>,
}

/// Writes the document, rows by descending self weight.
pub(super) fn write(profile: &Profile, by: By, to: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(profile, by);
    let part =
        |sum: &Sum| Part { samples: sum.samples, weight: sum.weight, share: table.share(EventId::MAIN, sum) };
    let rows = table.rows.iter().map(|row| Row {
        name: &row.label.name,
        object: &row.label.object,
        own: part(&row.own[0]),
        total: part(&row.total[0]),
    });
    let rows = BTreeMap::from([(by.plural(), rows.collect())]);
    let document = Document { schema: SCHEMA, header: &profile.header, rows };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
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
