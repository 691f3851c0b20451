//! The header as text.

mod event;
mod quality;

use std::io::{self, Write};

use super::text::{counted, printable, weight};
use crate::profile::Header;

/// How much of the header is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What, event and quality; more only of what is not well.
    Brief,
    /// All of it.
    Full,
}

/// Columns of the labels before the texts.
const LABEL: usize = 9;

/// Writes the header, a line for each thing a reader must know.
///
/// # Errors
///
/// Those of `to`.
pub fn write_header(header: &Header, detail: Detail, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "bpfprof: {}", what(header))?;
    Lines::of(header, detail).write(to)
}

/// Writes the headers of two profiles that are compared: what both have in common once.
///
/// # Errors
///
/// Those of `to`.
pub fn write_headers(before: &Header, after: &Header, detail: Detail, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "before: {}", what(before))?;
    writeln!(to, "after:  {}", what(after))?;
    let [before, after] = [before, after].map(|header| Lines::of(header, detail).by_label());
    let mut both = Lines::default();
    let labels = before.iter().chain(&after).map(|(label, _)| *label);
    let mut seen: Vec<&str> = Vec::new();
    for label in labels {
        if seen.contains(&label) {
            continue;
        }
        seen.push(label);
        let texts = |lines: &[(&'static str, Vec<String>)]| {
            lines.iter().find(|(other, _)| *other == label).map_or_else(Vec::new, |(_, texts)| texts.clone())
        };
        let (before, after) = (texts(&before), texts(&after));
        if before == after {
            both.extend(label, &before);
            continue;
        }
        let with_role = |role: &str, texts: Vec<String>| {
            let texts = if texts.is_empty() { vec!["–".into()] } else { texts };
            texts.into_iter().map(|text| format!("{role} {text}")).collect::<Vec<_>>()
        };
        both.extend(label, &[with_role("before:", before), with_role("after: ", after)].concat());
    }
    both.write(to)
}

/// The header as pairs of a label and a text; the first has no label, and so have those that go on with the one before.
pub(super) fn lines(header: &Header) -> Vec<(String, String)> {
    let first = (String::new(), format!("bpfprof: {}", what(header)));
    let others = Lines::of(header, Detail::Full).0;
    std::iter::once(first).chain(others.into_iter().map(|(label, text)| (label.into(), text))).collect()
}

/// What was recorded.
fn what(header: &Header) -> String {
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
    format!("{samples}{name} ({amount}){seconds} from {}", printable(&header.target))
}

/// Labels and texts. Lines without a label go on with the one before.
#[derive(Default)]
struct Lines(Vec<(&'static str, String)>);

impl Lines {
    fn of(header: &Header, detail: Detail) -> Self {
        let mut lines = Self::default();
        event::describe(header, detail, &mut lines);
        match &header.source {
            Some(source) => lines.add("source", source),
            None => quality::describe(header, detail, &mut lines),
        }
        for note in &header.notes {
            lines.add("note", note);
        }
        lines
    }

    fn add(&mut self, label: &'static str, text: &str) {
        self.0.push((label, printable(text)));
    }

    /// Adds texts of which the first has the label.
    fn extend(&mut self, label: &'static str, texts: &[String]) {
        for (at, text) in texts.iter().enumerate() {
            self.add(if at == 0 { label } else { "" }, text);
        }
    }

    /// All texts of each label, in the order in which the labels first appear.
    fn by_label(self) -> Vec<(&'static str, Vec<String>)> {
        let mut groups: Vec<(&'static str, Vec<String>)> = Vec::new();
        let mut current = "";
        for (label, text) in self.0 {
            current = if label.is_empty() { current } else { label };
            match groups.iter_mut().find(|(other, _)| *other == current) {
                Some((_, texts)) => texts.push(text),
                None => groups.push((current, vec![text])),
            }
        }
        groups
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|(label, text)| writeln!(to, "  {label:<LABEL$} {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{
        Attribution, EventInfo, LostInfo, MissingCounter, NamesInfo, ObjectLack, StacksInfo,
    };

    fn text(header: &Header, detail: Detail) -> String {
        let mut text = Vec::new();
        write_header(header, detail, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn missing(names: &[&str], reason: &str) -> Vec<MissingCounter> {
        names.iter().map(|&name| MissingCounter { name: name.into(), reason: reason.into() }).collect()
    }

    fn lack(object: &str, samples: u64, reason: &str) -> ObjectLack {
        ObjectLack { object: object.into(), samples, reason: reason.into() }
    }

    /// A run on a machine without PMU that lacks nothing else.
    fn good() -> Header {
        Header {
            target: "process 42 (app) and its children".into(),
            event: EventInfo {
                name: "cpu-clock".into(),
                unit: "ns".into(),
                rate: "997 Hz".into(),
                fallback: Some("cpu-clock stands in for cycles: there is no PMU".into()),
                closure: Some(0.998),
                ..EventInfo::default()
            },
            counters_missing: missing(&["cycles", "instructions"], "there is no PMU"),
            seconds: 5.0,
            cpus: 2,
            samples: 1000,
            weight: 1_003_000_000,
            stacks: StacksInfo {
                user: 1000,
                whole: 998,
                cut: vec![("too deep".into(), 2)],
                ..StacksInfo::default()
            },
            names: NamesInfo {
                frames: 1000,
                named: 995,
                without_symbols: vec![lack("/lib/x.so", 5, "stripped")],
                ..NamesInfo::default()
            },
            ..Header::default()
        }
    }

    /// A run that lacks everything.
    fn bad() -> Header {
        Header {
            counters: vec![EventInfo {
                name: "page-faults".into(),
                unit: "faults".into(),
                rate: "read at each sample of cpu-clock".into(),
                attribution: Attribution::Delta,
                samples: 20,
                weight: 300,
                counted: Some(500),
                running: 0.66,
                closure: Some(0.9),
                residual: 7,
                ..EventInfo::default()
            }],
            counters_missing: missing(&["LLC-load-misses"], "no counter is left"),
            lost: LostInfo {
                samples: 3,
                causes: vec![("the table was full".into(), 3, 3_000_000)],
                undelivered: Some(0.1),
                throttles: 2,
                idle_left_out: 9,
                ..LostInfo::default()
            },
            stacks: StacksInfo {
                user: 1000,
                whole: 930,
                guessed: 20,
                guesses: vec![("in JIT code".into(), 20)],
                cut: vec![("too deep".into(), 50)],
                without_table: vec![lack("/bin/x", 20, "it has no call-frame information")],
                ..StacksInfo::default()
            },
            names: NamesInfo {
                frames: 100,
                named: 90,
                without_symbols: vec![
                    lack("/lib/x\x1b.so", 100, "stripped"),
                    lack("/lib/y.so", 50, "stripped"),
                    lack("/bin/y", 20, "unreadable"),
                    lack("/bin/z", 15, "unreadable"),
                    lack("/bin/zz", 1, "unreadable"),
                ],
                ..NamesInfo::default()
            },
            notes: vec!["a note".into()],
            ..good()
        }
    }

    #[test]
    fn a_run_without_faults_has_three_lines() {
        assert_eq!(
            text(&good(), Detail::Brief),
            "bpfprof: 1,000 samples of cpu-clock (1.00 s) in 5.0 s from process 42 (app) and its children
  event     cpu-clock, 997 Hz, on 2 CPUs; stands in for cycles: there is no PMU (no IPC, GHz)
  quality   0 samples lost; 99.8 % of user stacks complete; 99.5 % of frames named
"
        );
    }

    #[test]
    fn a_full_header_says_all_of_it() {
        assert_eq!(
            text(&good(), Detail::Full),
            "bpfprof: 1,000 samples of cpu-clock (1.00 s) in 5.0 s from process 42 (app) and its children
  event     cpu-clock, 997 Hz, on 2 CPUs, coverage 99.8 %; stands in for cycles: there is no PMU
  missing   cycles, instructions: there is no PMU
            so that there is no IPC, GHz
  quality   0 samples lost; 99.8 % of user stacks complete; 99.5 % of frames named
  stacks    0.20 % too deep
  names     /lib/x.so (in 0.50 % of samples) lacks names: stripped
"
        );
        let full = text(&bad(), Detail::Full);
        assert!(full.contains("left out  9 samples of idle CPUs") && full.contains("/bin/zz"), "{full}");
    }

    #[test]
    fn all_that_limits_the_profile_is_said() {
        assert_eq!(
            text(&bad(), Detail::Brief),
            "bpfprof: 1,000 samples of cpu-clock (1.00 s) in 5.0 s from process 42 (app) and its children
  event     cpu-clock, 997 Hz, on 2 CPUs; stands in for cycles: there is no PMU
  counter   page-faults, read at each sample of cpu-clock: 300 faults in 20 readings, coverage 90.0 %
            7 faults between the last sample of a task and the switch to another: in no function
            page-faults was multiplexed: it counted for 66.0 % of the time, and its numbers are scaled
            delta attribution: a function that runs for less than the sampling interval takes the ratios of its neighbours
  missing   LLC-load-misses: no counter is left
  quality   3 samples lost; 93.0 % of user stacks complete; 2.0 % guessed; 90.0 % of frames named
  lost      3 samples (0.00 s): the table was full
            10.0 % of what the event counted came without a sample
            the kernel throttled the event 2 times; choose a lower rate, or raise kernel.perf_event_max_sample_rate
  stacks    2.0 % guessed by frame pointers in JIT code; 5.0 % too deep
            x (in 2.0 % of samples) lacks an unwind table: it has no call-frame information
  names     x\u{fffd}.so (in 10.0 % of samples), y.so (in 5.0 % of samples) lack names: stripped
            y (in 2.0 % of samples) lacks names: unreadable
            and 2 more objects lack names for some frames
  note      a note
"
        );
    }

    #[test]
    fn two_headers_say_once_what_they_share() {
        let after = Header { samples: 2000, weight: 2_000_000_000, target: "command app".into(), ..good() };
        let after = Header { lost: LostInfo { samples: 5, ..LostInfo::default() }, ..after };
        let mut text = Vec::new();
        write_headers(&good(), &after, Detail::Brief, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "before: 1,000 samples of cpu-clock (1.00 s) in 5.0 s from process 42 (app) and its children
after:  2,000 samples of cpu-clock (2.00 s) in 5.0 s from command app
  event     cpu-clock, 997 Hz, on 2 CPUs; stands in for cycles: there is no PMU (no IPC, GHz)
  quality   before: 0 samples lost; 99.8 % of user stacks complete; 99.5 % of frames named
            after:  5 samples lost; 99.8 % of user stacks complete; 99.5 % of frames named
"
        );
    }
}
