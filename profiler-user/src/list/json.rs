//! The list as JSON: schema 1.

use std::io::{self, Write};

use serde::Serialize;

use super::answer::{Opens, Why};
use super::section::{Class, Section};

/// Version of the document's form. It grows when a reader of the old form would misread the new one; added members do not count.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    events: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    aliases: &'a [&'a str],
    class: Class,
    unit: &'a str,
    /// `yes`, `count`, `root` or `no`.
    opens: &'a str,
    /// The highest precise level, for what can be sampled.
    precise: Option<u8>,
    /// Why it cannot be sampled.
    #[serde(flatten)]
    why: Option<&'a Why>,
}

/// Writes the document.
pub(super) fn write(sections: &[Section], to: &mut dyn Write) -> io::Result<()> {
    let events = sections.iter().flat_map(|section| {
        section.entries.iter().map(|entry| Event {
            name: &entry.name,
            aliases: entry.aliases,
            class: section.class,
            unit: &entry.unit,
            opens: entry.opens.word(),
            precise: match entry.opens {
                Opens::Sampling { precise } => Some(precise.level()),
                _ => None,
            },
            why: entry.opens.why(),
        })
    });
    serde_json::to_writer_pretty(&mut *to, &Document { schema: SCHEMA, events: events.collect() })?;
    writeln!(to)
}
