//! One function with its callers and callees, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::text::{printable, thousands};
use crate::profile::statistics::Estimate;
use crate::profile::{Header, Neighbour, Neighbours, Sum};

/// Stands for what calls the outermost function of a stack.
const NOTHING: &str = "[nothing: a stack begins here]";

/// Writes the callers, the function and its callees, at most `limit` of each, by their share of all and of the function.
///
/// # Errors
///
/// Those of `to`.
pub fn write_neighbours(neighbours: &Neighbours, limit: usize, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "all %  function %    samples")?;
    rows(neighbours, "called by", &neighbours.callers, limit, to)?;
    row(neighbours, &neighbours.total[0], &neighbours.name, to)?;
    rows(neighbours, "calls", &neighbours.callees, limit, to)?;
    row(neighbours, &neighbours.own[0], "    [itself]", to)
}

fn rows(
    neighbours: &Neighbours,
    role: &str,
    others: &[Neighbour],
    limit: usize,
    to: &mut dyn Write,
) -> io::Result<()> {
    for other in others.iter().take(limit) {
        let name = other.name.as_deref().unwrap_or(NOTHING);
        row(neighbours, &other.part[0], &format!("    {role} {name}"), to)?;
    }
    let hidden = others.len().saturating_sub(limit);
    if hidden > 0 {
        writeln!(to, "{:>31}… {role} {} more", "", thousands(hidden as u64))?;
    }
    Ok(())
}

fn row(neighbours: &Neighbours, sum: &Sum, name: &str, to: &mut dyn Write) -> io::Result<()> {
    let percent = |part: u64, whole: u64| format!("{:.2}", part as f64 / whole.max(1) as f64 * 100.0);
    let all = percent(sum.weight, neighbours.whole[0].weight);
    let of_function = percent(sum.weight, neighbours.total[0].weight);
    writeln!(to, "{all:>5}  {of_function:>10}  {:>9}  {}", thousands(sum.samples), printable(name))
}

/// Version of the document's form, as that of the table.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    header: &'a Header,
    function: &'a str,
    #[serde(rename = "self")]
    own: Part,
    total: Part,
    callers: Vec<NeighbourPart<'a>>,
    callees: Vec<NeighbourPart<'a>>,
}

#[derive(Serialize)]
struct NeighbourPart<'a> {
    /// `null` where a stack begins.
    name: Option<&'a str>,
    #[serde(flatten)]
    part: Part,
}

impl<'a> NeighbourPart<'a> {
    fn new(neighbour: &'a Neighbour, part: Part) -> Self {
        Self { name: neighbour.name.as_deref(), part }
    }
}

#[derive(Serialize)]
struct Part {
    samples: u64,
    weight: u64,
    /// Of all of the profile, with the 95 % interval for this run.
    share: Option<Estimate>,
}

/// Writes all of it as a document.
///
/// # Errors
///
/// Those of `to`.
pub fn write_neighbours_json(header: &Header, neighbours: &Neighbours, to: &mut dyn Write) -> io::Result<()> {
    let whole = &neighbours.whole[0];
    let part = |sums: &[Sum]| Part {
        samples: sums[0].samples,
        weight: sums[0].weight,
        share: sums[0].share_of(whole),
    };
    let document = Document {
        schema: SCHEMA,
        header,
        function: &neighbours.name,
        own: part(&neighbours.own),
        total: part(&neighbours.total),
        callers: neighbours
            .callers
            .iter()
            .map(|caller| NeighbourPart::new(caller, part(&caller.part)))
            .collect(),
        callees: neighbours
            .callees
            .iter()
            .map(|callee| NeighbourPart::new(callee, part(&callee.part)))
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn neighbours() -> (Header, Neighbours) {
        let profile =
            profile(&[("main;f;g", 30, 30), ("main;b;f", 10, 10), ("main;a;f", 5, 5), ("main", 55, 55)]);
        let neighbours = Neighbours::new(&profile, &"f".into());
        (profile.header, neighbours)
    }

    #[test]
    fn the_function_stands_between_its_callers_and_callees() {
        let mut text = Vec::new();
        write_neighbours(&neighbours().1, 2, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "all %  function %    samples
30.00       66.67         30      called by main
10.00       22.22         10      called by b
                               … called by 1 more
45.00      100.00         45  f
30.00       66.67         30      calls g
15.00       33.33         15      [itself]
"
        );
    }

    #[test]
    fn the_document_has_all_of_it() {
        let (header, neighbours) = neighbours();
        let mut text = Vec::new();
        write_neighbours_json(&header, &neighbours, &mut text).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&json["function"], &json["total"]["weight"]), (&"f".into(), &45.into()));
        assert_eq!((&json["callers"][2]["name"], &json["callers"][2]["samples"]), (&"a".into(), &5.into()));
        assert_eq!(json["callees"][0]["share"]["value"], 0.3);
        assert_eq!(json["header"]["event"]["name"], "cpu-clock");
    }
}
