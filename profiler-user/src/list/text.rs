//! The list as lines.

use std::io::{self, Write};

use super::answer::{Opens, Why};
use super::section::{Entry, Section};

/// Writes a title for each section and a line for each event: name, whether it opens, unit, and what is to be said.
pub(super) fn write(sections: &[Section], to: &mut dyn Write) -> io::Result<()> {
    let width =
        sections.iter().flat_map(|section| &section.entries).map(|entry| names(entry).chars().count());
    let width = width.max().unwrap_or(0);
    for (number, section) in sections.iter().enumerate() {
        if number > 0 {
            writeln!(to)?;
        }
        writeln!(to, "{}", section.title)?;
        let shared = shared_cause(section);
        if let Some(why) = shared {
            writeln!(to, "  {}: {why}", state_of_all(&section.entries[0].opens))?;
        }
        for entry in &section.entries {
            let remark = if shared.is_some() { String::new() } else { remark(&entry.opens) };
            let line =
                format!("  {:width$}  {:5}  {:16}  {remark}", names(entry), entry.opens.word(), entry.unit);
            writeln!(to, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

fn names(entry: &Entry) -> String {
    std::iter::once(entry.name.as_str()).chain(entry.aliases.iter().copied()).collect::<Vec<_>>().join(" or ")
}

/// The reason for which no event of the section can be sampled, if all have the same.
fn shared_cause(section: &Section) -> Option<&Why> {
    let (first, rest) = section.entries.split_first()?;
    let why = first.opens.why()?;
    rest.iter().all(|entry| entry.opens == first.opens).then_some(why)
}

fn state_of_all(opens: &Opens) -> &'static str {
    match opens {
        Opens::Sampling { .. } => "all open",
        Opens::Counting { .. } => "counted only",
        Opens::WithPrivilege { .. } => "there, but not for this user",
        Opens::Not { .. } => "none opens",
    }
}

fn remark(opens: &Opens) -> String {
    match opens {
        Opens::Sampling { precise } if precise.level() > 0 => format!("up to precise level {precise}"),
        Opens::Sampling { .. } => String::new(),
        Opens::Counting { why } | Opens::WithPrivilege { why } | Opens::Not { why } => why.cause.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::Class;
    use super::*;
    use crate::events::Precise;

    fn entry(name: &str, unit: &str, opens: Opens) -> Entry {
        Entry { name: name.to_owned(), aliases: &[], unit: unit.to_owned(), opens }
    }

    fn no(cause: &str) -> Opens {
        Opens::Not { why: Why { cause: cause.to_owned(), remedy: "do this".to_owned() } }
    }

    fn text(entries: Vec<Entry>) -> String {
        let mut text = Vec::new();
        let section = Section { title: "Title".to_owned(), class: Class::Hardware, entries };
        write(&[section.clone(), section], &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_cause_that_all_share_is_said_once() {
        let alike = text(vec![entry("cycles", "cycles", no("no PMU")), entry("b", "branches", no("no PMU"))]);
        let once =
            "Title\n  none opens: no PMU; do this\n  cycles  no     cycles\n  b       no     branches\n";
        assert_eq!(alike, format!("{once}\n{once}"));
    }

    #[test]
    fn causes_that_differ_are_said_with_their_events() {
        let mixed = text(vec![
            entry("cycles", "cycles", Opens::Sampling { precise: Precise::new(3).unwrap() }),
            entry("b", "branches", no("not there")),
        ]);
        let section = "Title\n  cycles  yes    cycles            up to precise level 3\n  \
                       b       no     branches          not there\n";
        assert_eq!(mixed, format!("{section}\n{section}"));
    }
}
