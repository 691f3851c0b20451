//! Speedscope's own format: one profile an event, with the thread as the outermost frame of each stack.
//!
//! The form is that of <https://www.speedscope.app/file-format-schema.json>.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::folded::Weight;
use super::text::{counted, printable};
use super::time_order;
use crate::profile::{EventId, EventInfo, FunctionId, Profile, Sample, TaskId};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<SharedFrame<'a>>,
}

/// A function, or a thread.
#[derive(Serialize)]
struct SharedFrame<'a> {
    name: String,
    /// The source file where it is known, else the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Stacks<'a>,
    weights: Vec<u64>,
}

/// The stacks of samples, written without a copy of them all.
struct Stacks<'a> {
    profile: &'a Profile,
    samples: Vec<&'a Sample>,
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.samples.iter().map(|sample| {
            let functions =
                self.profile.stack(sample.stack).iter().map(|&frame| self.profile.frame(frame).function);
            let thread = index_of_thread(self.profile, sample.task);
            [thread].into_iter().chain(functions.map(index_of_function)).collect::<Vec<_>>()
        }))
    }
}

/// Writes all events of a profile; this one is shown first.
pub(super) fn write(profile: &Profile, event: EventId, weight: Weight, to: &mut dyn Write) -> io::Result<()> {
    let header = &profile.header;
    let document = Document {
        schema: SCHEMA,
        name: format!(
            "{}: {} of {} in {:.1} s",
            printable(&header.target),
            counted(header.samples, "sample"),
            header.event.name,
            header.seconds
        ),
        exporter: format!("bpfprof {}", header.version),
        active_profile_index: event.0.into(),
        shared: Shared { frames: frames(profile) },
        profiles: header.events().map(|(id, event)| sampled(profile, id, event, weight)).collect(),
    };
    serde_json::to_writer(to, &document).map_err(io::Error::from)
}

fn sampled<'a>(profile: &'a Profile, id: EventId, event: &EventInfo, weight: Weight) -> Sampled<'a> {
    let mut samples = time_order::samples(profile, id);
    samples.retain(|sample| weight.of(sample) > 0);
    let weights: Vec<u64> = samples.iter().map(|sample| weight.of(sample)).collect();
    let (unit, what) = match (weight, event.unit.as_str()) {
        (Weight::Samples, _) => ("none", "samples"),
        (Weight::Event, "ns") => ("nanoseconds", "time"),
        (Weight::Event, unit) => ("none", unit),
    };
    Sampled {
        r#type: "sampled",
        name: if what == event.name { event.name.clone() } else { format!("{} ({what})", event.name) },
        unit,
        start_value: 0,
        end_value: weights.iter().sum(),
        samples: Stacks { profile, samples },
        weights,
    }
}

/// Functions, then threads.
fn frames(profile: &Profile) -> Vec<SharedFrame<'_>> {
    let mut files: HashMap<FunctionId, &str> = HashMap::new();
    for frame in &profile.frames {
        if let Some(line) = frame.line {
            files.entry(frame.function).or_insert(&profile.line(line).file);
        }
    }
    let functions = profile.functions.iter().zip(0..).map(|(function, id)| SharedFrame {
        name: printable(&function.name),
        file: Some(files.get(&FunctionId(id)).copied().unwrap_or(&function.object)),
    });
    let threads =
        profile.tasks.iter().map(|task| SharedFrame { name: printable(&task.to_string()), file: None });
    functions.chain(threads).collect()
}

fn index_of_function(function: FunctionId) -> usize {
    function.0 as usize
}

fn index_of_thread(profile: &Profile, task: TaskId) -> usize {
    profile.functions.len() + task.0 as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    fn document(profile: &Profile, weight: Weight) -> serde_json::Value {
        let mut text = Vec::new();
        write(profile, EventId(1), weight, &mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn name(document: &serde_json::Value, frame: &serde_json::Value) -> String {
        document["shared"]["frames"][frame.as_u64().unwrap() as usize]["name"].as_str().unwrap().into()
    }

    #[test]
    fn each_event_is_a_profile() {
        let profile = with_counter(
            profile(&[("main;f\n;g", 3, 30), ("main", 1, 10)]),
            "page-faults",
            &[("main;h", 2, 7)],
        );
        let document = document(&profile, Weight::Event);
        assert_eq!(document["$schema"], SCHEMA);
        let profiles = document["profiles"].as_array().unwrap();
        assert_eq!((profiles.len(), &document["activeProfileIndex"]), (2, &1.into()));
        assert_eq!((&profiles[0]["type"], &profiles[0]["unit"]), (&"sampled".into(), &"nanoseconds".into()));
        assert_eq!(profiles[0]["weights"], serde_json::json!([30, 10]));
        assert_eq!((&profiles[0]["startValue"], &profiles[0]["endValue"]), (&0.into(), &40.into()));
        let names: Vec<String> = profiles[0]["samples"][0]
            .as_array()
            .unwrap()
            .iter()
            .map(|frame| name(&document, frame))
            .collect();
        assert_eq!(names, ["app (42)", "main", "f\u{fffd}", "g"]);
        assert_eq!(profiles[1]["name"], "page-faults (events)");
        assert_eq!((&profiles[1]["unit"], &profiles[1]["endValue"]), (&"none".into(), &7.into()));
    }

    #[test]
    fn samples_can_be_counted_instead() {
        let document = document(&profile(&[("main", 3, 30)]), Weight::Samples);
        assert_eq!(document["profiles"][0]["weights"], serde_json::json!([3]));
        assert_eq!(document["profiles"][0]["unit"], "none");
    }
}
