//! The Firefox Profiler's processed format, compressed by gzip.
//!
//! It has room for one event. Weights are samples; where the event is a clock, the activity of threads is
//! drawn by the CPU time that they took.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use flate2::{Compression, write::GzEncoder};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo,
    Profile as Firefox, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};

use super::text::{counted, printable};
use super::time_order;
use crate::profile::{EventId, EventInfo, FrameId, FrameKind, Profile, Sample, StackId};

/// Subcategories that are made, one an object; the crate panics beyond 2¹⁶ in a category. Objects beyond share one.
const MAX_SUBCATEGORIES: usize = 10_000;

/// Writes the samples of an event.
pub(super) fn write(profile: &Profile, event: EventId, to: &mut dyn Write) -> io::Result<()> {
    let mut compressed = GzEncoder::new(to, Compression::default());
    serde_json::to_writer(&mut compressed, &convert(profile, event))?;
    compressed.finish().map(drop)
}

fn convert(profile: &Profile, event: EventId) -> Firefox {
    let header = &profile.header;
    let info = header.event(event).unwrap_or(&header.event);
    let product = format!("bpfprof: {} of {}", counted(info.samples, "sample"), printable(&info.name));
    // The header does not know the time of day, so the recording begins with the epoch.
    let begin = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut conversion = Conversion::new(
        profile,
        info.unit == "ns",
        Firefox::new(&product, begin, interval(header.seconds, info)),
    );
    conversion.firefox.set_os_name(&format!("Linux, {}", printable(&header.target)));
    conversion.add_threads();
    for slice in time_order::samples(profile, event).chunk_by(|a, b| (a.slice, a.task) == (b.slice, b.task)) {
        conversion.add_slice(slice);
    }
    conversion.firefox
}

/// The usual time between two samples of a busy CPU.
fn interval(seconds: f64, event: &EventInfo) -> SamplingInterval {
    let covered = if event.unit == "ns" { event.weight as f64 } else { seconds * 1e9 };
    let nanoseconds = covered / event.samples.max(1) as f64;
    SamplingInterval::from_nanos((nanoseconds as u64).max(1))
}

/// A profile that is being filled.
struct Conversion<'a> {
    profile: &'a Profile,
    /// Whether weights are CPU time in nanoseconds.
    is_clock: bool,
    firefox: Firefox,
    /// By task, with the slice after the last that the thread had samples in.
    threads: Vec<(ThreadHandle, u32)>,
    frames: Vec<(Frame, CategoryPairHandle)>,
    stacks: HashMap<(ThreadHandle, StackId), Option<StackHandle>>,
}

impl<'a> Conversion<'a> {
    fn new(profile: &'a Profile, is_clock: bool, mut firefox: Firefox) -> Self {
        let [user, inlined, kernel] = [
            ("User", CategoryColor::Yellow),
            ("Inlined", CategoryColor::Green),
            ("Kernel", CategoryColor::Orange),
        ]
        .map(|(name, color)| firefox.add_category(name, color));
        let category_of = |kind| match kind {
            FrameKind::User => user,
            FrameKind::Inlined => inlined,
            FrameKind::Kernel => kernel,
        };
        let mut objects: HashMap<(CategoryHandle, &str), CategoryPairHandle> = HashMap::new();
        let mut frames = Vec::with_capacity(profile.frames.len());
        for frame in &profile.frames {
            let function = profile.function(frame.function);
            let category = category_of(frame.kind);
            let has_room = objects.len() < MAX_SUBCATEGORIES;
            let pair = match objects.get(&(category, &*function.object)) {
                Some(&pair) => pair,
                None if has_room => {
                    let pair = firefox.add_subcategory(category, &printable(&function.object));
                    objects.insert((category, &function.object), pair);
                    pair
                }
                None => category.into(),
            };
            frames.push((Frame::Label(firefox.intern_string(&printable(&function.name))), pair));
        }
        Self { profile, is_clock, firefox, threads: Vec::new(), frames, stacks: HashMap::new() }
    }

    /// A thread for each task. Processes are named as their first thread is.
    fn add_threads(&mut self) {
        let start = Timestamp::from_nanos_since_reference(0);
        let mut processes = HashMap::new();
        for task in self.profile.tasks.iter().filter(|task| task.process == task.thread) {
            processes
                .entry(task.process)
                .or_insert_with(|| self.firefox.add_process(&printable(&task.comm), task.process, start));
        }
        for task in &self.profile.tasks {
            let process = *processes
                .entry(task.process)
                .or_insert_with(|| self.firefox.add_process(&printable(&task.comm), task.process, start));
            let thread = self.firefox.add_thread(process, task.thread, start, task.process == task.thread);
            self.firefox.set_thread_name(thread, &printable(&task.comm));
            self.threads.push((thread, 0));
        }
    }

    /// Adds what one task had in one slice. Samples are spread over it by weight, each at the end of its part: the true moments are not
    /// known.
    fn add_slice(&mut self, samples: &[&Sample]) {
        let Some(&&Sample { task, slice, .. }) = samples.first() else { return };
        let Some(&(thread, next)) = self.threads.get(task.0 as usize) else { return };
        let length = self.profile.header.slices.seconds * 1e9;
        let time =
            |part: f64| Timestamp::from_nanos_since_reference(((f64::from(slice) + part) * length) as u64);
        if slice > next {
            // The thread has been idle until here.
            self.firefox.add_sample(thread, time(0.0), None, CpuDelta::ZERO, 0);
        }
        let whole = samples.iter().map(|sample| sample.weight as f64).sum::<f64>().max(1.0);
        let mut passed = 0.0;
        for sample in samples {
            passed += sample.weight as f64;
            let busy = if self.is_clock { CpuDelta::from_nanos(sample.weight) } else { CpuDelta::ZERO };
            let weight = i32::try_from(sample.samples).unwrap_or(i32::MAX);
            let stack = self.stack(thread, sample.stack);
            self.firefox.add_sample(thread, time(passed / whole), stack, busy, weight);
        }
        self.threads[task.0 as usize].1 = slice + 1;
    }

    fn stack(&mut self, thread: ThreadHandle, stack: StackId) -> Option<StackHandle> {
        if let Some(&known) = self.stacks.get(&(thread, stack)) {
            return known;
        }
        let frames = self.profile.stack(stack).iter().map(|&FrameId(frame)| {
            let (frame, category_pair) = self.frames[frame as usize].clone();
            FrameInfo { frame, category_pair, flags: FrameFlags::empty() }
        });
        let handle = self.firefox.intern_stack_frames(thread, frames);
        self.stacks.insert((thread, stack), handle);
        handle
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::Value;

    use super::*;
    use crate::profile::testing::profile;

    fn written(profile: &Profile) -> Value {
        let mut bytes = Vec::new();
        write(profile, EventId::MAIN, &mut bytes).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    }

    #[test]
    fn samples_lie_in_their_slices() {
        let mut profile = profile(&[("main;f;read_[k]", 3, 30_000_000), ("main;g_[i]", 1, 10_000_000)]);
        profile.header.slices = crate::profile::Slices { count: 4, seconds: 0.1 };
        profile.samples[1].slice = 2;
        let written = written(&profile);
        let samples = &written["threads"][0]["samples"];
        // The end of slice 0, the begin of slice 2 after an idle slice, its end: in milliseconds.
        let deltas = numbers(&samples["timeDeltas"]);
        assert_eq!(deltas.len(), 3);
        for (delta, expected) in deltas.iter().zip([100.0, 100.0, 100.0]) {
            assert!((delta - expected).abs() < 0.01, "{deltas:?}");
        }
        assert_eq!(numbers(&samples["weight"]), [3.0, 0.0, 1.0]);
        assert_eq!(numbers(&samples["threadCPUDelta"]), [30_000.0, 0.0, 10_000.0]);
        assert!(samples["stack"][1].is_null());
        assert_eq!(
            (&written["threads"][0]["pid"], &written["threads"][0]["name"]),
            (&"42".into(), &"app".into())
        );
    }

    #[test]
    fn frames_say_where_they_run() {
        let written = written(&profile(&[("main;g_[i];read_[k]", 1, 10)]));
        let thread = &written["threads"][0];
        let names: Vec<String> = numbers(&thread["frameTable"]["category"])
            .into_iter()
            .map(|category| written["meta"]["categories"][category as usize]["name"].as_str().unwrap().into())
            .collect();
        assert_eq!(names, ["User", "Inlined", "Kernel"]);
        let strings: Vec<&str> =
            thread["stringArray"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(["main", "g", "read"].iter().all(|name| strings.contains(name)), "{strings:?}");
    }
}
