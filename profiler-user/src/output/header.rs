//! The header as text.

use std::io::{self, Write};

use super::text::{counted, percent, printable, thousands, weight};
use crate::profile::metrics::Metric;
use crate::profile::{Attribution, EventInfo, Header, MissingCounter, ObjectLack};

/// Objects that lack something and are named; the rest is summed up.
const OBJECTS_NAMED: usize = 5;

/// Shares of samples that had no event delivered above which this is a warning and not a rounding.
const UNDELIVERED_WORTH_SAYING: f64 = 0.02;

/// Counters that are shared run for less; reading several takes a moment.
const RUNNING_ALL_THE_TIME: f64 = 0.999;

/// Columns of the labels before the texts.
const LABEL: usize = 9;

/// Writes the header, a line for each thing a reader must know.
///
/// # Errors
///
/// Those of `to`.
pub fn write_header(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    let event = &header.event;
    // A file of another program may say neither.
    let samples = match (&header.source, header.samples) {
        (Some(_), 0) => String::new(),
        (_, samples) => format!("{} of ", counted(samples, "sample")),
    };
    let seconds = match (&header.source, header.seconds) {
        (Some(_), seconds) if seconds <= 0.0 => String::new(),
        (_, seconds) => format!(" in {seconds:.1} s"),
    };
    let (name, amount) = (printable(&event.name), printable(&weight(header.weight, &event.unit)));
    writeln!(to, "bpfprof: {samples}{name} ({amount}){seconds} from {}", printable(&header.target))?;
    let cpus = match header.source {
        None => format!(", on {}", counted(header.cpus as u64, "CPU")),
        Some(_) => String::new(),
    };
    line(to, "event", &format!("{}{cpus}{}", how(event), closure(event)))?;
    if let Some(fallback) = &event.fallback {
        line(to, "", &printable(fallback))?;
    }
    scaled(event, to)?;
    counters(header, to)?;
    match &header.source {
        Some(source) => line(to, "source", &printable(source))?,
        None => {
            lost(header, to)?;
            stacks(header, to)?;
            names(header, to)?;
        }
    }
    for note in &header.notes {
        line(to, "note", &printable(note))?;
    }
    Ok(())
}

/// The same as pairs of a label and a text; the first has no label, and so have those that go on with the one before.
pub(super) fn lines(header: &Header) -> Vec<(String, String)> {
    let mut text = Vec::new();
    // A vector takes all that is written to it.
    let _ = write_header(header, &mut text);
    let text = String::from_utf8_lossy(&text);
    let indented = |line: &str| {
        let line = line.strip_prefix("  ")?;
        let (label, text) = line.split_at_checked(LABEL)?;
        Some((label.trim_end().into(), text.trim_start().into()))
    };
    text.lines().map(|line| indented(line).unwrap_or_else(|| (String::new(), line.into()))).collect()
}

fn how(event: &EventInfo) -> String {
    let precise =
        if event.precise > 0 { format!(", precise level {}", event.precise) } else { String::new() };
    format!("{}, {}{precise}", printable(&event.name), printable(&event.rate))
}

fn closure(event: &EventInfo) -> String {
    event.closure.map_or_else(String::new, |closure| format!(", closure {}", percent(closure)))
}

/// Says that the event shared a counter with others, and for how long it had none.
fn scaled(event: &EventInfo, to: &mut dyn Write) -> io::Result<()> {
    match event.counted {
        Some(_) if event.running <= 0.0 => line(to, "", &format!("{} never had a counter", event.name)),
        Some(_) if event.running < RUNNING_ALL_THE_TIME => {
            let share = percent(event.running);
            line(
                to,
                "",
                &format!(
                    "{} had a counter for {share} of the time; its numbers are scaled to all of it",
                    event.name
                ),
            )
        }
        _ => Ok(()),
    }
}

fn counters(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    for counter in &header.counters {
        let amount = weight(counter.weight, &counter.unit);
        let samples = match counter.attribution {
            Attribution::Overflow => counted(counter.samples, "sample"),
            Attribution::Delta => counted(counter.samples, "reading"),
        };
        line(to, "counter", &format!("{}: {amount} in {samples}{}", how(counter), closure(counter)))?;
        if counter.residual > 0 {
            let residual = weight(counter.residual, &counter.unit);
            line(
                to,
                "",
                &format!(
                    "{residual} between the last sample of a task and the switch to another: in no function"
                ),
            )?;
        }
        scaled(counter, to)?;
    }
    let short = header.counters.iter().any(|counter| counter.attribution == Attribution::Delta);
    if short {
        line(
            to,
            "",
            "delta attribution: a function that runs for less than the sampling interval takes the ratios of its neighbours",
        )?;
    }
    missing(header, to)
}

/// Events of sets that are not here, those with the same cause together.
fn missing(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    for MissingCounter { name, reason } in &header.counters_missing {
        match causes.iter_mut().find(|(cause, _)| cause == reason) {
            Some((_, names)) => names.push(name),
            None => causes.push((reason, vec![name])),
        }
    }
    for (cause, names) in &causes {
        line(to, "missing", &format!("{}: {}", names.join(", "), printable(cause)))?;
    }
    let metrics = missing_metrics(header);
    if !metrics.is_empty() {
        line(to, "", &format!("so that there is no {}", metrics.join(", ")))?;
    }
    Ok(())
}

/// Titles of the metrics that the missing events would have made possible.
fn missing_metrics(header: &Header) -> Vec<&'static str> {
    let present: Vec<&str> = header.events().map(|(_, event)| event.name.as_str()).collect();
    let missing = header.counters_missing.iter().map(|missing| missing.name.as_str());
    let all: Vec<&str> = present.iter().copied().chain(missing).collect();
    let possible = Metric::computable(&all).into_iter().filter(|metric| metric.missing(&present).is_some());
    possible.map(|metric| metric.title).collect()
}

fn lost(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    let lost = &header.lost;
    line(to, "lost", &counted(lost.samples, "sample"))?;
    for (cause, samples, amount) in &lost.causes {
        line(
            to,
            "",
            &format!("{} ({}): {cause}", counted(*samples, "sample"), weight(*amount, &header.event.unit)),
        )?;
    }
    if let Some(share) = lost.undelivered.filter(|share| *share > UNDELIVERED_WORTH_SAYING) {
        line(to, "", &format!("{} of what the event counted came without a sample", percent(share)))?;
    }
    if lost.throttles > 0 {
        let text = format!(
            "the kernel throttled the event {}; choose a lower rate, or raise kernel.perf_event_max_sample_rate",
            if lost.throttles == 1 { "once".into() } else { format!("{} times", thousands(lost.throttles)) }
        );
        line(to, "", &text)?;
    }
    if lost.not_followed > 0 {
        line(
            to,
            "",
            &format!("{} could not be followed: too many at a time", counted(lost.not_followed, "new task")),
        )?;
    }
    if lost.sideband_records > 0 {
        let records = counted(lost.sideband_records, "record");
        line(to, "", &format!("{records} of mappings and processes; some frames may be [unknown]"))?;
    }
    if lost.idle_left_out > 0 {
        line(
            to,
            "left out",
            &format!("{} of idle CPUs (--idle shows them)", counted(lost.idle_left_out, "sample")),
        )?;
    }
    if lost.user_mode_left_out > 0 {
        line(
            to,
            "left out",
            &format!("{} in user mode (--kernel-only)", counted(lost.user_mode_left_out, "sample")),
        )?;
    }
    Ok(())
}

fn stacks(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    let stacks = &header.stacks;
    let Some(whole) = stacks.whole_share() else {
        return line(to, "stacks", "no user stacks");
    };
    let share = |samples: u64| percent(samples as f64 / stacks.user as f64);
    let guesses = stacks
        .guesses
        .iter()
        .map(|(place, samples)| format!("{} guessed by frame pointers {place}", share(*samples)));
    let cut = stacks.cut.iter().map(|(reason, samples)| format!("{} {reason}", share(*samples)));
    let parts: Vec<String> =
        [format!("{} of user stacks whole", percent(whole))].into_iter().chain(guesses).chain(cut).collect();
    line(to, "stacks", &parts.join("; "))?;
    lacking(&stacks.without_table, "an unwind table", header, to)
}

fn names(header: &Header, to: &mut dyn Write) -> io::Result<()> {
    let names = &header.names;
    let Some(named) = names.named_share() else { return Ok(()) };
    line(to, "names", &format!("{} of frames named", percent(named)))?;
    lacking(&names.without_symbols, "names", header, to)
}

/// Objects that lack this, and why.
fn lacking(objects: &[ObjectLack], what: &str, header: &Header, to: &mut dyn Write) -> io::Result<()> {
    for ObjectLack { object, samples, reason } in objects.iter().take(OBJECTS_NAMED) {
        let share = percent(*samples as f64 / header.samples.max(1) as f64);
        let (object, reason) = (printable(object), printable(reason));
        line(to, "", &format!("{object} (in {share} of samples) lacks {what}: {reason}"))?;
    }
    let more = objects.len().saturating_sub(OBJECTS_NAMED);
    if more > 0 {
        line(to, "", &format!("and {} more objects lack {what} for some frames", thousands(more as u64)))?;
    }
    Ok(())
}

fn line(to: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    writeln!(to, "  {label:<LABEL$} {}", printable(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{LostInfo, NamesInfo, StacksInfo};

    #[test]
    fn all_that_limits_the_profile_is_said() {
        let header = Header {
            target: "process 42 (app) and its children".into(),
            event: EventInfo {
                name: "cpu-clock".into(),
                unit: "ns".into(),
                rate: "997 Hz".into(),
                fallback: Some("cycles cannot be sampled here".into()),
                ..EventInfo::default()
            },
            counters: vec![EventInfo {
                name: "page-faults".into(),
                unit: "faults".into(),
                rate: "read at each sample of cpu-clock".into(),
                attribution: Attribution::Delta,
                samples: 20,
                weight: 300,
                counted: Some(500),
                running: 0.66,
                closure: Some(1.0),
                residual: 7,
                ..EventInfo::default()
            }],
            counters_missing: ["cycles", "instructions"]
                .map(|name| MissingCounter { name: name.into(), reason: "there is no PMU".into() })
                .into(),
            seconds: 5.0,
            cpus: 2,
            samples: 1000,
            weight: 1_003_000_000,
            lost: LostInfo {
                samples: 3,
                causes: vec![("the table was full".into(), 3, 3_000_000)],
                undelivered: Some(0.1),
                throttles: 2,
                ..LostInfo::default()
            },
            stacks: StacksInfo {
                user: 1000,
                whole: 990,
                cut: vec![("too deep".into(), 10)],
                without_table: vec![ObjectLack {
                    object: "/bin/x".into(),
                    samples: 20,
                    reason: "it has no call-frame information".into(),
                }],
                ..StacksInfo::default()
            },
            names: NamesInfo {
                frames: 100,
                named: 90,
                without_symbols: vec![ObjectLack {
                    object: "/lib/x\x1b.so".into(),
                    samples: 100,
                    reason: "no symbols".into(),
                }],
            },
            notes: vec!["a note".into()],
            ..Header::default()
        };
        let mut text = Vec::new();
        write_header(&header, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "bpfprof: 1,000 samples of cpu-clock (1.00 s) in 5.0 s from process 42 (app) and its children
  event     cpu-clock, 997 Hz, on 2 CPUs
            cycles cannot be sampled here
  counter   page-faults, read at each sample of cpu-clock: 300 faults in 20 readings, closure 100.0 %
            7 faults between the last sample of a task and the switch to another: in no function
            page-faults had a counter for 66.0 % of the time; its numbers are scaled to all of it
            delta attribution: a function that runs for less than the sampling interval takes the ratios of its neighbours
  missing   cycles, instructions: there is no PMU
            so that there is no IPC, GHz
  lost      3 samples
            3 samples (0.00 s): the table was full
            10.0 % of what the event counted came without a sample
            the kernel throttled the event 2 times; choose a lower rate, or raise kernel.perf_event_max_sample_rate
  stacks    99.0 % of user stacks whole; 1.0 % too deep
            /bin/x (in 2.0 % of samples) lacks an unwind table: it has no call-frame information
  names     90.0 % of frames named
            /lib/x\u{fffd}.so (in 10.0 % of samples) lacks names: no symbols
  note      a note
"
        );
    }
}
