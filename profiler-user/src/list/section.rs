//! The events that have names here, by who counts them.

use super::answer::{Host, Opens, Why};
use super::pattern::Pattern;
use crate::events::catalogue::{self, PmuEvents};
use crate::events::{EventSpec, Failure};

/// Events of one kind.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) class: Class,
    pub(super) entries: Vec<Entry>,
}

/// Who counts the events of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    Hardware,
    Cache,
    Software,
    Pmu,
    Tracepoint,
    /// Not an event but a way to write many.
    Form,
}

/// An event, or a form of events.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) aliases: &'static [&'static str],
    pub(super) unit: String,
    pub(super) opens: Opens,
}

/// All but tracepoints, without sections that have nothing to show.
pub(super) fn named(host: &Host, pattern: Option<&Pattern>) -> Vec<Section> {
    let generic = |class, title: &str, specs: Vec<EventSpec>| {
        let events = specs.into_iter().map(|spec| (spec, None));
        section(host, class, title.to_owned(), events, pattern)
    };
    let mut sections = vec![
        generic(Class::Hardware, "Hardware events", catalogue::hardware_events().collect()),
        generic(Class::Cache, "Cache events", catalogue::cache_events().collect()),
        generic(
            Class::Software,
            "Software events, counted by the kernel",
            catalogue::software_events().collect(),
        ),
    ];
    for pmu in catalogue::pmus() {
        let title = title_of(&pmu);
        sections.push(section(host, Class::Pmu, title, pmu.events.into_iter(), pattern));
    }
    sections.push(forms(host, pattern));
    sections.retain(|section| !section.entries.is_empty());
    sections
}

/// The tracepoints that match.
pub(super) fn tracepoints(host: &Host, pattern: &Pattern) -> Result<Option<Section>, Why> {
    let all = catalogue::tracepoints().map_err(unlistable)?;
    let matching: Vec<EventSpec> =
        all.into_iter().filter(|spec| pattern.matches(&spec.to_string())).collect();
    // To open one patches the running kernel, so one is asked for all.
    let Some(opens) = matching.first().map(|first| host.ask(first)) else { return Ok(None) };
    let entry = |spec: EventSpec| Entry {
        name: spec.to_string(),
        aliases: &[],
        unit: spec.unit().to_owned(),
        opens: opens.clone(),
    };
    Ok(Some(Section {
        title: "Tracepoints of the kernel".to_owned(),
        class: Class::Tracepoint,
        entries: matching.into_iter().map(entry).collect(),
    }))
}

fn section(
    host: &Host,
    class: Class,
    title: String,
    events: impl Iterator<Item = (EventSpec, Option<String>)>,
    pattern: Option<&Pattern>,
) -> Section {
    let is_wanted = |spec: &EventSpec| {
        let name = spec.to_string();
        let mut names = spec.aliases().iter().copied().chain([name.as_str()]);
        pattern.is_none_or(|pattern| names.any(|name| pattern.matches(name)))
    };
    let entries = events.filter(|(spec, _)| is_wanted(spec)).map(|(spec, unit)| Entry {
        name: spec.to_string(),
        aliases: spec.aliases(),
        unit: unit.unwrap_or_else(|| spec.unit().to_owned()),
        opens: host.ask(&spec),
    });
    let entries = entries.collect();
    Section { title, class, entries }
}

fn title_of(pmu: &PmuEvents) -> String {
    match pmu.terms.as_slice() {
        [] => format!("Events of PMU {}", pmu.pmu),
        terms => format!(
            "Events of PMU {0}, also by {0}/term=value,…/ with the terms {1}",
            pmu.pmu,
            terms.join(", ")
        ),
    }
}

/// The ways to write events that no list can hold, each tried by an example.
fn forms(host: &Host, pattern: Option<&Pattern>) -> Section {
    let by_example = |name: &str, example: &str| {
        let spec: EventSpec = example.parse().ok()?;
        Some(Entry {
            name: name.to_owned(),
            aliases: &[],
            unit: spec.unit().to_owned(),
            opens: host.ask(&spec),
        })
    };
    let watched = format!("mem:{:#x}", tracepoint_form as *const () as usize);
    let candidates = [
        by_example("rHEX", RAW_CYCLES),
        by_example("mem:ADDRESS:x", &format!("{watched}:x:u")),
        by_example("mem:ADDRESS[/LENGTH]:[r][w]", &format!("{watched}/1:w:u")),
        Some(tracepoint_form(host)),
    ];
    let is_wanted = |entry: &Entry| pattern.is_none_or(|pattern| pattern.matches(&entry.name));
    Section {
        title: "Forms of events: raw code of the CPU's PMU, breakpoint, tracepoint".to_owned(),
        class: Class::Form,
        entries: candidates.into_iter().flatten().filter(is_wanted).collect(),
    }
}

/// A code that every PMU of the architecture has: cycles.
const RAW_CYCLES: &str = if cfg!(target_arch = "aarch64") { "r0011" } else { "r003c" };

fn tracepoint_form(host: &Host) -> Entry {
    let opens = match catalogue::tracepoints() {
        Ok(all) => match all.first() {
            Some(first) => host.ask(first),
            None => Opens::Not {
                why: Why { cause: "this kernel has none".into(), remedy: "use another event".into() },
            },
        },
        Err(failure) => Opens::Not { why: unlistable(failure) },
    };
    Entry { name: "SUBSYSTEM:NAME".to_owned(), aliases: &[], unit: "events".to_owned(), opens }
}

fn unlistable(failure: Failure) -> Why {
    match failure {
        Failure::Unknown { cause, remedy } => Why { cause, remedy },
        other => Why { cause: other.to_string(), remedy: "run it with sudo".to_owned() },
    }
}
