//! The events: those really used, what they stand in for, and those that are missing.

use super::super::text::{counted, percent, weight};
use super::{Detail, Lines};
use crate::profile::metrics::Metric;
use crate::profile::{Attribution, EventInfo, Header, MissingCounter};

/// Counters that are multiplexed run for less; reading several takes a moment.
const RUNNING_ALL_THE_TIME: f64 = 0.999;

/// Coverages that differ from all by less than this are not worth a word.
const COVERAGE_TOLERATED: f64 = 0.05;

/// Describes the events.
pub(super) fn describe(header: &Header, detail: Detail, lines: &mut Lines) {
    let event = &header.event;
    let cpus = match header.source {
        None => format!(", on {}", counted(header.cpus as u64, "CPU")),
        Some(_) => String::new(),
    };
    let stands_in = event.fallback.as_ref().map_or_else(String::new, |fallback| {
        let fallback = fallback.strip_prefix(&event.name).map_or(fallback.as_str(), str::trim_start);
        format!("; {fallback}{}", without_metrics(header, detail))
    });
    lines.add("event", &format!("{}{cpus}{}{stands_in}", how(event), coverage(event, detail)));
    multiplexed(event, lines);
    counters(header, detail, lines);
    missing(header, detail, lines);
}

fn how(event: &EventInfo) -> String {
    let precise =
        if event.precise > 0 { format!(", precise level {}", event.precise) } else { String::new() };
    format!("{}, {}{precise}", event.name, event.rate)
}

fn coverage(event: &EventInfo, detail: Detail) -> String {
    let is_told = |coverage: &f64| detail == Detail::Full || (coverage - 1.0).abs() > COVERAGE_TOLERATED;
    let coverage = event.closure.filter(is_told);
    coverage.map_or_else(String::new, |coverage| format!(", coverage {}", percent(coverage)))
}

/// Says that the event was multiplexed, and for how long it had a counter.
fn multiplexed(event: &EventInfo, lines: &mut Lines) {
    let name = &event.name;
    match event.counted {
        Some(_) if event.running <= 0.0 => lines.add("", &format!("{name} never had a counter")),
        Some(_) if event.running < RUNNING_ALL_THE_TIME => {
            let share = percent(event.running);
            lines.add(
                "",
                &format!(
                    "{name} was multiplexed: it counted for {share} of the time, and its numbers are scaled"
                ),
            );
        }
        _ => {}
    }
}

fn counters(header: &Header, detail: Detail, lines: &mut Lines) {
    for counter in &header.counters {
        let amount = weight(counter.weight, &counter.unit);
        let samples = match counter.attribution {
            Attribution::Overflow => counted(counter.samples, "sample"),
            Attribution::Delta => counted(counter.samples, "reading"),
        };
        let coverage = coverage(counter, detail);
        lines.add("counter", &format!("{}: {amount} in {samples}{coverage}", how(counter)));
        if counter.residual > 0 {
            let residual = weight(counter.residual, &counter.unit);
            lines.add(
                "",
                &format!(
                    "{residual} between the last sample of a task and the switch to another: in no function"
                ),
            );
        }
        multiplexed(counter, lines);
    }
    if header.counters.iter().any(|counter| counter.attribution == Attribution::Delta) {
        lines.add(
            "",
            "delta attribution: a function that runs for less than the sampling interval takes the ratios of its neighbours",
        );
    }
}

/// Events of sets that are unavailable, those with the same cause together.
fn missing(header: &Header, detail: Detail, lines: &mut Lines) {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    let told = |missing: &&MissingCounter| detail == Detail::Full || !is_told_with_fallback(header, missing);
    for MissingCounter { name, reason } in header.counters_missing.iter().filter(told) {
        match causes.iter_mut().find(|(cause, _)| cause == reason) {
            Some((_, names)) => names.push(name),
            None => causes.push((reason, vec![name])),
        }
    }
    for (cause, names) in &causes {
        lines.add("missing", &format!("{}: {cause}", names.join(", ")));
    }
    let metrics = missing_metrics(header);
    if !causes.is_empty() && !metrics.is_empty() {
        lines.add("", &format!("so that there is no {}", metrics.join(", ")));
    }
}

/// What the missing events cost, where one cause explains all.
fn without_metrics(header: &Header, detail: Detail) -> String {
    let metrics = missing_metrics(header);
    let all_told = header.counters_missing.iter().all(|missing| is_told_with_fallback(header, missing));
    if detail == Detail::Full || metrics.is_empty() || !all_told {
        return String::new();
    }
    format!(" (no {})", metrics.join(", "))
}

/// Whether the event lacks for the same cause as the one that another stands in for.
fn is_told_with_fallback(header: &Header, missing: &MissingCounter) -> bool {
    header.event.fallback.as_ref().is_some_and(|fallback| fallback.ends_with(&missing.reason))
}

/// Titles of the metrics that the missing events would have made possible.
fn missing_metrics(header: &Header) -> Vec<&'static str> {
    let present: Vec<&str> = header.events().map(|(_, event)| event.name.as_str()).collect();
    let missing = header.counters_missing.iter().map(|missing| missing.name.as_str());
    let all: Vec<&str> = present.iter().copied().chain(missing).collect();
    let possible = Metric::computable(&all).into_iter().filter(|metric| metric.missing(&present).is_some());
    possible.map(|metric| metric.title).collect()
}
