//! One page that needs nothing else: header, table, flame graph, callers and callees.
//!
//! Names come from strangers' files. They are in the page only as data that no parser of HTML looks into, the scripts show them as text,
//! and the page's policy allows no other scripts and no network.

mod document;
mod tree;

use std::io::{self, Write};

use askama::Template;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use super::text::printable;
use super::view::View;
use crate::profile::{EventId, Profile};
use document::Document;

const STYLE: &str = include_str!("style.css");
/// The scripts, which see each other's functions.
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("data.js"),
    include_str!("text.js"),
    include_str!("color.js"),
    include_str!("own.js"),
    include_str!("flame.js"),
    include_str!("table.js"),
    include_str!("callers.js"),
    include_str!("page.js"),
);

#[derive(Template)]
#[template(path = "page.html", config = "askama.toml")]
struct Page<'a> {
    title: String,
    style: &'static str,
    style_hash: String,
    script: &'static str,
    script_hash: String,
    /// JSON without `<`.
    data: &'a str,
}

/// Writes the page; it begins with this event and with the choices of the view.
pub(super) fn write(profile: &Profile, event: EventId, view: &View, to: &mut dyn Write) -> io::Result<()> {
    let header = &profile.header;
    let data = inert(&serde_json::to_string(&Document::new(profile, event, view))?);
    let page = Page {
        title: format!("{}: {} · bpfprof", header.event.name, printable(&header.target)),
        style: STYLE,
        style_hash: hash(STYLE),
        script: SCRIPT,
        script_hash: hash(SCRIPT),
        data: &data,
    };
    page.write_into(to)
}

/// JSON in which nothing ends or begins an element: `<` is only in its strings.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// As the policy of a page names a script that may run.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::profile::By;
    use crate::profile::testing::{profile, with_counter};

    fn page(profile: &Profile) -> String {
        let mut bytes = Vec::new();
        let view = View { by: By::Process, ..View::default() };
        write(profile, EventId(0), &view, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn names_are_data_only() {
        let mut profile = profile(&[("main;</script><script>alert(1)</script>;<!--", 1, 10)]);
        profile.header.target = "command <img src=x onerror=alert(2)>".into();
        let page = page(&profile);
        assert!(
            !page.contains("<script>alert") && !page.contains("<img") && !page.contains("<!--<"),
            "{page}"
        );
        let data = data(&page);
        let strings = data["strings"].as_array().unwrap();
        assert!(strings.contains(&"</script><script>alert(1)</script>".into()), "{strings:?}");
        assert_eq!(data["target"], profile.header.target);
    }

    #[test]
    fn nothing_is_fetched() {
        let page = page(&profile(&[("main", 1, 10)]));
        assert!(page.contains("default-src 'none'"));
        for (before, after) in page.match_indices("http").map(|(at, _)| page.split_at(at)) {
            let context: String = before.chars().rev().take(20).chain(after.chars().take(40)).collect();
            assert!(after.starts_with("http://www.w3.org") || after.starts_with("http-equiv"), "{context}");
        }
    }

    #[test]
    fn every_event_has_its_weights() {
        let profile = with_counter(
            with_counter(
                profile(&[("main;f;read_[k]", 3, 30), ("main", 1, 10)]),
                "page-faults",
                &[("main;g", 2, 7)],
            ),
            "never",
            &[],
        );
        let data = data(&page(&profile));
        let names: Vec<&Value> =
            data["events"].as_array().unwrap().iter().map(|event| &event["name"]).collect();
        assert_eq!(names, ["cpu-clock", "page-faults", "never"]);
        let weights = &data["nodes"]["weights"];
        assert_eq!((&weights[0][0], &weights[1][0], &weights[2][0]), (&40.into(), &7.into(), &0.into()));
        let rows = &data["tables"][0]["rows"];
        assert_eq!(rows.as_array().unwrap().len(), 4);
        assert_eq!(data["strings"][rows[0]["name"].as_u64().unwrap() as usize], "read");
        // Samples and weight of the function itself and of all it calls, then the interval.
        let cost = &rows[0]["events"][0];
        assert_eq!(cost[0], serde_json::json!([3, 30, 3, 30]));
        assert!(cost[1][0].as_f64().unwrap() < 30.0 && cost[1][1].as_f64().unwrap() > 30.0);
        assert!(rows[0]["events"][1].is_null());
        let metric = &data["metrics"][0];
        assert_eq!(metric["name"], "faults-per-second");
        assert_eq!(
            (&metric["numerator"], &metric["denominator"], &metric["factor"]),
            (&1.into(), &0.into(), &1e9.into())
        );
        assert_eq!(data["start"], serde_json::json!({"event": 0, "table": 3, "colorBy": "kind"}));
        assert_eq!(data["tables"][3]["heading"], "process");
        assert!(rows[0]["metrics"][0].is_null(), "three samples carry no metric");
    }
}
