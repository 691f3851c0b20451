//! The text of `perf script`: a line for each sample, then its frames, innermost first.

use std::collections::HashMap;

use super::SavedError;
use super::builder::{Builder, MOST_EVENTS};
use super::foreign::{self, UNKNOWN};
use crate::pprof::KERNEL_START;
use crate::profile::{EventId, FrameId, FrameKind, Profile, Sample, Slices, Task, TaskId};

/// Slices of time are no shorter than a drain of bpfprof, in seconds.
const SHORTEST_SLICE: f64 = 0.2;

/// Most slices, as in a recording of bpfprof.
const MOST_SLICES: f64 = 512.0;

/// Whether a line begins a sample.
pub(super) fn is_header(line: &str) -> bool {
    Header::parse(line).is_some()
}

/// The line of a sample: `comm pid/tid [cpu] seconds: period event: …`, of which tid, cpu and period may be missing.
struct Header<'a> {
    comm: &'a str,
    process: u32,
    thread: u32,
    seconds: f64,
    period: u64,
    event: &'a str,
    /// What follows: the innermost frame, where there are no others.
    rest: &'a str,
}

/// A sample whose slice is not known yet.
struct Timed {
    task: TaskId,
    event: EventId,
    seconds: f64,
    weight: u64,
    frames: Vec<FrameId>,
}

/// Reads the samples.
pub(super) fn read(text: &str) -> Result<Profile, SavedError> {
    let mut builder = Builder::new(0);
    let mut events: Vec<&str> = Vec::new();
    let mut samples: Vec<Timed> = Vec::new();
    let mut cache = HashMap::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        if let Some(header) = Header::parse(content) {
            let event = match events.iter().position(|&event| event == header.event) {
                Some(event) => event,
                None if events.len() == MOST_EVENTS => {
                    return Err(SavedError::Line { line, what: "more events than are read" });
                }
                None => {
                    events.push(header.event);
                    builder.add_event();
                    events.len() - 1
                }
            };
            let Header { process, thread, comm, seconds, period, rest, .. } = header;
            let task =
                builder.profile.add_task(Task { process, thread, comm: comm.into(), cgroup: "".into() });
            let frames = Frame::parse(rest).map(|frame| frame.add(&mut builder)).into_iter().collect();
            samples.push(Timed { task, event: EventId(event as u16), seconds, weight: period, frames });
        } else if let Some(sample) = samples.last_mut().filter(|_| content.starts_with([' ', '\t'])) {
            let frame =
                Frame::parse(content).ok_or(SavedError::Line { line, what: "no frame of a stack" })?;
            let id = *cache.entry(content).or_insert_with(|| frame.add(&mut builder));
            sample.frames.push(id);
        } else {
            return Err(SavedError::Line { line, what: "neither a sample of perf script nor a frame" });
        }
    }
    finish(builder, &events, samples)
}

fn finish(mut builder: Builder, events: &[&str], samples: Vec<Timed>) -> Result<Profile, SavedError> {
    let times = || samples.iter().map(|sample| sample.seconds);
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let length = ((last - first) / MOST_SLICES).max(SHORTEST_SLICE);
    let slice_at = |seconds: f64| ((seconds - first) / length).floor().clamp(0.0, MOST_SLICES - 1.0) as u32;
    let slices = Slices { count: slice_at(last) + 1, seconds: length };
    for mut sample in samples {
        place_inlined(&mut builder, &mut sample.frames);
        if sample.frames.is_empty() {
            let object = builder.object("");
            sample.frames.push(builder.frame(UNKNOWN, FrameKind::User, object, 0));
        }
        sample.frames.reverse();
        let stack = builder.add_stack(sample.frames)?;
        builder.add_sample(Sample {
            task: sample.task,
            stack,
            slice: slice_at(sample.seconds),
            event: sample.event,
            samples: 1,
            weight: sample.weight,
        })?;
    }
    let info = |name: &&str| {
        let is_clock = ["cpu-clock", "task-clock"].iter().any(|clock| name.starts_with(clock));
        foreign::event(name, if is_clock { "ns" } else { "events" }, "rate not known")
    };
    let mut infos = events.iter().map(info);
    let main = infos.next().ok_or(SavedError::Empty)?;
    let source = "samples alone: what was lost and how whole the stacks are is not known";
    Ok(builder.finish(foreign::header("the text of perf script", source, main, infos.collect(), slices))?.0)
}

/// Gives inlined frames, innermost first, the object of the function behind them that they are part of.
fn place_inlined(builder: &mut Builder, frames: &mut [FrameId]) {
    let mut object = None;
    for id in frames.iter_mut().rev() {
        let frame = builder.profile.frame(*id);
        match (frame.kind, object) {
            (FrameKind::Inlined, Some(mapping)) => {
                let name = builder.profile.function(frame.function).name.clone();
                *id = builder.frame(&name, FrameKind::Inlined, mapping, 0);
            }
            (FrameKind::Inlined, None) => {}
            _ => object = Some(frame.mapping),
        }
    }
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The command name may hold anything, so the first word that can be ids and has a time behind it ends it.
        let words = words(line);
        (1..words.len().saturating_sub(1)).find_map(|at| Self::parse_from(line, &words, at))
    }

    fn parse_from(line: &'a str, words: &[(usize, &'a str)], at: usize) -> Option<Self> {
        let (comm_end, ids) = words[at];
        let (process, thread) = match ids.split_once('/') {
            Some((process, thread)) => (id(process)?, id(thread)?),
            None => (id(ids)?, id(ids)?),
        };
        let mut rest = words[at + 1..].iter();
        let mut next = || rest.next().copied();
        let (_, mut time) = next()?;
        if time.starts_with('[') && time.ends_with(']') {
            (_, time) = next()?;
        }
        let seconds: f64 = time.strip_suffix(':').filter(|time| time.contains('.'))?.parse().ok()?;
        let (start, word) = next()?;
        let (period, (start, event)) = match word.parse() {
            Ok(period) => (period, next()?),
            Err(_) => (1, (start, word)),
        };
        let rest = &line[start + event.len()..];
        let event = event.strip_suffix(':').filter(|event| !event.is_empty())?;
        (0.0..1e12).contains(&seconds).then_some(Self {
            comm: line[..comm_end].trim(),
            process,
            thread,
            seconds,
            period,
            event,
            rest,
        })
    }
}

/// Words with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let place = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    line.split_whitespace().map(|word| (place(word), word)).collect()
}

/// Ids below 0 are of tasks that were gone.
fn id(word: &str) -> Option<u32> {
    word.parse::<i64>().ok().map(|id| u32::try_from(id).unwrap_or(0))
}

/// A frame: `address function+0xoffset (object)`.
struct Frame<'a> {
    address: u64,
    name: &'a str,
    object: &'a str,
}

impl<'a> Frame<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (address, rest) = line.trim().split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let (name, object) = match rest.trim().strip_suffix(')') {
            Some(rest) => {
                let inside = rest.strip_suffix(" (deleted)").unwrap_or(rest);
                let open = inside.rfind('(')?;
                (rest[..open].trim(), &rest[open + 1..])
            }
            None => (rest.trim(), ""),
        };
        let is_offset = |offset: &str| offset.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = match name.rsplit_once("+0x") {
            Some((name, offset)) if is_offset(offset) => name,
            _ => name,
        };
        Some(Self { address, name, object })
    }

    fn add(&self, builder: &mut Builder) -> FrameId {
        if self.object == "inlined" {
            let object = builder.object("");
            return builder.frame(self.name, FrameKind::Inlined, object, 0);
        }
        let object = builder.object(self.object);
        // Where an object lay is not said, so places in it are not known.
        if self.address >= KERNEL_START {
            builder.frame(self.name, FrameKind::Kernel, object, self.address)
        } else {
            builder.frame(self.name, FrameKind::User, object, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{self, Format, View};

    const TEXT: &str = "\
# captured on: Mon
my app  71/72  [001]  100.000001:     250000 cpu-clock:u:
\tffffffffa0000010 do_sys_poll+0x10 ([kernel.kallsyms])
\t    7f00000005a1 leaf(int, char (*)(int))+0x1 (/usr/lib/lib.so (deleted))
\t    7f00000005a0 small (inlined)
\t    7f00000005a0 big+0x20 (/usr/bin/my app)

my app    72 101.500000:      250000 cpu-clock:u:
\t    7f00000005a0 [unknown] ([unknown])

other 9 [000] 102.1: page-faults:  401130 main+0x0 (/usr/bin/other)
";

    #[test]
    fn samples_have_their_stacks_events_and_times() {
        let profile = read(TEXT).unwrap();
        let mut folded = Vec::new();
        output::write(&profile, Format::Folded, &View::default(), &mut folded).unwrap();
        assert_eq!(
            String::from_utf8(folded).unwrap(),
            "my app;[unknown] 250000\n\
             my app;big;small_[i];leaf(int, char (*)(int));do_sys_poll_[k] 250000\n"
        );
        let header = &profile.header;
        assert_eq!(
            (header.event.name.as_str(), header.event.unit.as_str(), header.samples),
            ("cpu-clock:u", "ns", 2)
        );
        assert_eq!((header.counters[0].name.as_str(), header.counters[0].weight), ("page-faults", 1));
        assert_eq!(header.slices.count, 11);
        let slices: Vec<u32> = profile.samples.iter().map(|sample| sample.slice).collect();
        assert_eq!(slices, [0, 7, 10]);
        let task = profile.task(profile.samples[0].task);
        assert_eq!((task.process, task.thread, &*task.comm), (71, 72, "my app"));
        let objects: Vec<&str> = profile.mappings.iter().map(|mapping| &*mapping.name).collect();
        assert!(objects.contains(&"lib.so (deleted)") && objects.contains(&"my app"), "{objects:?}");
    }

    #[test]
    fn what_is_no_sample_is_said_with_its_line() {
        for (text, line) in [("x 1 1.0: e:\nnonsense\n", 2), ("x 1 1.0: e:\n\tnonsense\n", 2)] {
            match read(text) {
                Err(SavedError::Line { line: at, .. }) => assert_eq!(at, line),
                other => panic!("{other:?}"),
            }
        }
    }
}
