//! How far the samples can be trusted: what was lost, how complete stacks are, how many frames have names.

use std::path::Path;

use super::super::text::{counted, percent, thousands, weight};
use super::{Detail, Lines};
use crate::profile::{Header, ObjectLack};

/// Shares of samples that had no event delivered above which this is a warning and not a rounding.
const UNDELIVERED_WORTH_SAYING: f64 = 0.02;

/// Shares of complete stacks and of named frames below which the brief header says what the others lack.
const WELL: f64 = 0.99;

/// Objects that a brief header names, and the share of samples from which it does.
const OBJECTS_IN_BRIEF: (usize, f64) = (3, 0.005);

/// Objects that a full header names.
const OBJECTS_IN_FULL: usize = 20;

/// Describes the quality: in one line, and in others what is not well.
pub(super) fn describe(header: &Header, detail: Detail, lines: &mut Lines) {
    let (stacks, names) = (&header.stacks, &header.names);
    let complete = stacks.whole_share();
    let mut parts = vec![format!("{} lost", counted(header.lost.samples, "sample"))];
    parts.push(complete.map_or_else(
        || "no user stacks".into(),
        |share| format!("{} of user stacks complete", percent(share)),
    ));
    if stacks.guessed > 0 {
        parts.push(format!("{} guessed", percent(stacks.guessed as f64 / stacks.user.max(1) as f64)));
    }
    let named = names.named_share();
    parts.extend(named.map(|share| format!("{} of frames named", percent(share))));
    lines.add("quality", &parts.join("; "));
    lost(header, detail, lines);
    let is_told = |share: Option<f64>| detail == Detail::Full || share.is_some_and(|share| share < WELL);
    if is_told(complete) {
        truncated(header, detail, lines);
    }
    if is_told(named) {
        lacking("names", "names", &names.without_symbols, header, detail, lines);
    }
}

fn lost(header: &Header, detail: Detail, lines: &mut Lines) {
    let lost = &header.lost;
    let mut texts = Vec::new();
    for (cause, samples, amount) in &lost.causes {
        let amount = weight(*amount, &header.event.unit);
        texts.push(format!("{} ({amount}): {cause}", counted(*samples, "sample")));
    }
    if let Some(share) = lost.undelivered.filter(|share| *share > UNDELIVERED_WORTH_SAYING) {
        texts.push(format!("{} of what the event counted came without a sample", percent(share)));
    }
    if lost.throttles > 0 {
        let times =
            if lost.throttles == 1 { "once".into() } else { format!("{} times", thousands(lost.throttles)) };
        texts.push(format!(
            "the kernel throttled the event {times}; choose a lower rate, or raise kernel.perf_event_max_sample_rate"
        ));
    }
    if lost.not_followed > 0 {
        let tasks = counted(lost.not_followed, "new task");
        texts.push(format!("{tasks} could not be followed: too many at a time"));
    }
    if lost.sideband_records > 0 {
        let records = counted(lost.sideband_records, "record");
        texts.push(format!("{records} of mappings and processes; some frames may be [unknown]"));
    }
    lines.extend("lost", &texts);
    if detail == Detail::Brief {
        return;
    }
    if lost.idle_left_out > 0 {
        let samples = counted(lost.idle_left_out, "sample");
        lines.add("left out", &format!("{samples} of idle CPUs (--idle shows them)"));
    }
    if lost.user_mode_left_out > 0 {
        let samples = counted(lost.user_mode_left_out, "sample");
        lines.add("left out", &format!("{samples} in user mode (--kernel-only)"));
    }
}

/// Why stacks are not complete.
fn truncated(header: &Header, detail: Detail, lines: &mut Lines) {
    let stacks = &header.stacks;
    let share = |samples: u64| percent(samples as f64 / stacks.user as f64);
    let guesses = stacks
        .guesses
        .iter()
        .map(|(place, samples)| format!("{} guessed by frame pointers {place}", share(*samples)));
    let cut = stacks.cut.iter().map(|(reason, samples)| format!("{} {reason}", share(*samples)));
    let reasons: Vec<String> = guesses.chain(cut).collect();
    let label = if reasons.is_empty() { "stacks" } else { "" };
    if !reasons.is_empty() {
        lines.add("stacks", &reasons.join("; "));
    }
    lacking(label, "an unwind table", &stacks.without_table, header, detail, lines);
}

/// Objects that lack this, those with the same reason together.
fn lacking(
    label: &'static str,
    what: &str,
    objects: &[ObjectLack],
    header: &Header,
    detail: Detail,
    lines: &mut Lines,
) {
    let share = |lack: &ObjectLack| lack.samples as f64 / header.samples.max(1) as f64;
    let shown = match detail {
        Detail::Brief => {
            let (most, least) = OBJECTS_IN_BRIEF;
            objects.iter().take(most).filter(|lack| share(lack) >= least).count()
        }
        Detail::Full => objects.len().min(OBJECTS_IN_FULL),
    };
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for lack in &objects[..shown] {
        let name = match detail {
            Detail::Brief => Path::new(&lack.object)
                .file_name()
                .map_or(lack.object.as_str().into(), |name| name.to_string_lossy()),
            Detail::Full => lack.object.as_str().into(),
        };
        let object = format!("{name} (in {} of samples)", percent(share(lack)));
        match reasons.iter_mut().find(|(reason, _)| *reason == lack.reason) {
            Some((_, objects)) => objects.push(object),
            None => reasons.push((&lack.reason, vec![object])),
        }
    }
    let mut texts: Vec<String> = reasons
        .iter()
        .map(|(reason, objects)| {
            let verb = if objects.len() == 1 { "lacks" } else { "lack" };
            format!("{} {verb} {what}: {reason}", objects.join(", "))
        })
        .collect();
    let more = objects.len() - shown;
    if more > 0 && shown > 0 {
        let noun = if more == 1 { "object lacks" } else { "objects lack" };
        texts.push(format!("and {} more {noun} {what} for some frames", thousands(more as u64)));
    }
    lines.extend(label, &texts);
}
