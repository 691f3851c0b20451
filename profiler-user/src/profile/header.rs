//! The header: what was recorded, and all that limits what it says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::model::EventId;
use crate::printable::printable;

/// Goes with every output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Version of bpfprof.
    pub version: String,
    /// What was sampled, in words.
    pub target: String,
    /// Where the profile comes from when bpfprof did not record it, in words; what is said of losses, stacks, names and CPUs means nothing then.
    pub source: Option<String>,
    /// The event.
    pub event: EventInfo,
    /// Events that were measured besides, in the order of [`EventId`](super::EventId) from 1 on.
    pub counters: Vec<EventInfo>,
    /// Events that were asked for as part of a set and are not here.
    pub counters_missing: Vec<MissingCounter>,
    /// When sampling began, in nanoseconds since 1970 (UTC); `None` where it is not known.
    pub began: Option<u64>,
    /// Time that was sampled, in seconds.
    pub seconds: f64,
    /// CPUs that were sampled at the end.
    pub cpus: usize,
    /// Slices of time that samples are told apart by.
    pub slices: Slices,
    /// Samples in the profile.
    pub samples: u64,
    /// Their weight, in the event's unit.
    pub weight: u64,
    /// What is missing.
    pub lost: LostInfo,
    /// How whole the stacks are.
    pub stacks: StacksInfo,
    /// How many frames have names.
    pub names: NamesInfo,
    /// What else a reader must know, a sentence each.
    pub notes: Vec<String>,
}

impl Header {
    /// What is known of an event; `None` for an id of another profile.
    #[must_use]
    pub fn event(&self, id: EventId) -> Option<&EventInfo> {
        match id.0 {
            0 => Some(&self.event),
            counter => self.counters.get(usize::from(counter) - 1),
        }
    }

    /// Makes what comes from untrusted files printable.
    pub(crate) fn make_printable(&mut self) {
        let lacks = self.stacks.without_table.iter_mut().chain(&mut self.names.without_symbols);
        let texts = lacks.flat_map(|lack| [&mut lack.object, &mut lack.reason]);
        let texts = texts.chain(&mut self.notes).chain([&mut self.target]).chain(&mut self.source);
        for text in texts {
            if let Cow::Owned(printable) = printable(text) {
                *text = printable;
            }
        }
    }

    /// All events, the sampled one first.
    pub fn events(&self) -> impl Iterator<Item = (EventId, &EventInfo)> {
        (0..).map(EventId).zip(std::iter::once(&self.event).chain(&self.counters))
    }
}

/// An event that was really used, and how far its numbers carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventInfo {
    /// Its name.
    pub name: String,
    /// What it counts, plural.
    pub unit: String,
    /// How often it was sampled, in words.
    pub rate: String,
    /// Precision asked of the hardware: 0 (any skid) to 3 (none).
    pub precise: u8,
    /// Why it stands in for the default event; `None` when it does not.
    pub fallback: Option<String>,
    /// How its counts reach functions.
    pub attribution: Attribution,
    /// Samples in the profile; with `delta` attribution, readings.
    pub samples: u64,
    /// What they stand for, scaled where the event had a counter for a part of the time only.
    pub weight: u64,
    /// What the event counted on all sampled CPUs, targets or not, scaled as the weight; `None` where the kernel could not say.
    pub counted: Option<u64>,
    /// Part of the time that the event had a counter; below 1 the kernel shared counters among too many events.
    pub running: f64,
    /// What came with samples or readings, of targets or not, as a share of what was counted. `None` for so few samples that the last,
    /// unfinished periods would make up much of it.
    pub closure: Option<f64>,
    /// With `delta` attribution, what targets counted between their last reading and the switch to another task: in no function.
    pub residual: u64,
}

/// How counts of an event reach functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribution {
    /// By samples of the event's own overflow.
    #[default]
    Overflow,
    /// By the increase since the last reading in the same task, read at each sample of the main event.
    Delta,
}

/// An event of a set that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingCounter {
    /// The event.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// Slices of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slices {
    /// How many.
    pub count: u32,
    /// Their mean length, in seconds.
    pub seconds: f64,
}

/// Samples that are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostInfo {
    /// Known to be lost.
    pub samples: u64,
    /// Their weight.
    pub weight: u64,
    /// Causes in words, with samples and weight.
    pub causes: Vec<(String, u64, u64)>,
    /// Share of what the event counted that was never delivered as a sample; `None` when nothing was counted.
    pub undelivered: Option<f64>,
    /// Times the kernel throttled the event.
    pub throttles: u64,
    /// Processes or threads that could not be followed.
    pub not_followed: u64,
    /// Side-band records lost: mappings may be unknown.
    pub sideband_records: u64,
    /// Samples of idle CPUs that were left out.
    pub idle_left_out: u64,
    /// Samples in user mode that were left out because only the kernel was asked for.
    pub user_mode_left_out: u64,
}

/// How whole the user stacks are, in samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StacksInfo {
    /// Samples with a user stack.
    pub user: u64,
    /// Of these, samples whose stack reaches the first function of its thread.
    pub whole: u64,
    /// User frames kept of one stack.
    pub frame_limit: u32,
    /// Samples whose stack seems to, but frame pointers stood in for call-frame information on the way: callers may be missing or wrong.
    pub guessed: u64,
    /// These, by the place where that was, most frequent first.
    pub guesses: Vec<(String, u64)>,
    /// The others, by reason, most frequent first.
    pub cut: Vec<(String, u64)>,
    /// Objects without unwind table for frames of theirs, by share of samples. Frame pointers stood in for it, where that was allowed.
    pub without_table: Vec<ObjectLack>,
}

impl StacksInfo {
    /// Share of user stacks that are whole; `None` without user stacks.
    #[must_use]
    pub fn whole_share(&self) -> Option<f64> {
        (self.user > 0).then(|| self.whole as f64 / self.user as f64)
    }
}

/// How many frames have names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamesInfo {
    /// Frames of all samples.
    pub frames: u64,
    /// Of these, frames with the name of a function.
    pub named: u64,
    /// Objects without names for their frames, by share of samples.
    pub without_symbols: Vec<ObjectLack>,
    /// Other names of functions, and those of parts and copies of them that were met, by object and function.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl NamesInfo {
    /// Share of frames with names; `None` without frames.
    #[must_use]
    pub fn named_share(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.named as f64 / self.frames as f64)
    }
}

/// An object that lacks something which frames in it need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectLack {
    /// The object.
    pub object: String,
    /// Samples with such a frame in their stack.
    pub samples: u64,
    /// Why, and what helps.
    pub reason: String,
}
