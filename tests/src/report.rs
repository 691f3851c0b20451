//! The JSON output, as much of it as the tests read. Every field here is part of the contract.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::folded::is_function;
use crate::run::read_output;

/// The whole output.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Version of the format.
    pub schema: u32,
    /// What was recorded, and what limits it.
    pub header: Header,
    /// By descending self weight.
    pub functions: Vec<Function>,
}

/// What was recorded, and what limits it.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// Version of bpfprof.
    pub version: String,
    /// In words.
    pub target: String,
    /// The event really used.
    pub event: Event,
    /// Events measured besides.
    pub counters: Vec<Event>,
    /// Events of a set that could not be.
    pub counters_missing: Vec<Missing>,
    /// Time that was sampled.
    pub seconds: f64,
    /// CPUs that were sampled.
    pub cpus: u32,
    /// In the profile.
    pub samples: u64,
    /// In the event's unit.
    pub weight: u64,
    /// What is missing.
    pub lost: Lost,
    /// How whole the user stacks are.
    pub stacks: Stacks,
    /// How many frames have names.
    pub names: Names,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// The event really used.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// In perf's spelling.
    pub name: String,
    /// What it counts.
    pub unit: String,
    /// In words.
    pub rate: String,
    /// Precise level.
    pub precise: u8,
    /// Why it stands in for the default.
    pub fallback: Option<String>,
    /// `overflow` or `delta`.
    pub attribution: String,
    /// Samples or readings in the profile.
    pub samples: u64,
    /// What they stand for.
    pub weight: u64,
    /// What it counted on all CPUs.
    pub counted: Option<u64>,
    /// Part of the time that it had a counter.
    pub running: f64,
    /// Part of what was counted that came with samples or readings, of targets or not.
    pub closure: Option<f64>,
    /// What targets counted in no function.
    pub residual: u64,
}

/// An event of a set that could not be measured.
#[derive(Debug, Deserialize)]
pub struct Missing {
    /// In perf's spelling.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What is missing.
#[derive(Debug, Deserialize)]
pub struct Lost {
    /// Known to be lost.
    pub samples: u64,
    /// Their weight.
    pub weight: u64,
    /// Share of what the event counted on all CPUs that never came as a sample.
    pub undelivered: Option<f64>,
    /// Times the kernel throttled the event.
    pub throttles: u64,
    /// Tasks that could not be followed.
    pub not_followed: u64,
    /// Records of mappings that are gone.
    pub sideband_records: u64,
    /// Samples of idle CPUs.
    pub idle_left_out: u64,
    /// Samples in user mode that were not asked for.
    pub user_mode_left_out: u64,
}

/// How whole the user stacks are.
#[derive(Debug, Deserialize)]
pub struct Stacks {
    /// Samples with a user stack.
    pub user: u64,
    /// Of these, those that reach the thread's first function.
    pub whole: u64,
    /// Those that seem to, by frame pointers where call-frame information is missing.
    pub guessed: u64,
    /// These, by place.
    pub guesses: Vec<(String, u64)>,
    /// User frames kept of one stack.
    pub frame_limit: u32,
    /// Why the others do not, and how many samples each reason has.
    pub cut: Vec<(String, u64)>,
    /// Objects that had no unwind table.
    pub without_table: Vec<Lack>,
}

/// An object that lacks something.
#[derive(Debug, Deserialize)]
pub struct Lack {
    /// Its path.
    pub object: String,
    /// Samples with a frame that needed it.
    pub samples: u64,
    /// Why it is lacking, and what helps.
    pub reason: String,
}

/// How many frames have names.
#[derive(Debug, Deserialize)]
pub struct Names {
    /// All.
    pub frames: u64,
    /// Those with the name of a function.
    pub named: u64,
}

/// One function.
#[derive(Debug, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The file it lies in.
    pub object: String,
    /// Samples in it.
    #[serde(rename = "self")]
    pub own: Cost,
    /// Samples in it or in what it calls.
    pub total: Cost,
    /// What it counted itself, by event.
    #[serde(default)]
    pub counters: HashMap<String, Count>,
    /// Ratios of that, by metric; `None` when there is too little to tell.
    #[serde(default)]
    pub metrics: HashMap<String, Option<Share>>,
    /// Its other names.
    #[serde(default)]
    pub also: Vec<String>,
    /// The source line that takes most of it.
    pub hottest_line: Option<HottestLine>,
}

/// The source line that takes most of a function itself.
#[derive(Debug, Deserialize)]
pub struct HottestLine {
    /// Path of its file.
    pub file: String,
    /// Its number.
    pub line: u32,
    /// Part of what the function takes itself.
    pub share: f64,
}

/// What a function counted.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Count {
    /// Samples or readings.
    pub samples: u64,
    /// What they stand for.
    pub count: u64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
}

/// What a function takes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Cost {
    /// Samples.
    pub samples: u64,
    /// In the event's unit.
    pub weight: u64,
    /// Share of the whole profile; `None` when there is too little to tell.
    pub share: Option<Share>,
}

/// A share or a ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Share {
    /// Estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Report {
    /// Reads an output file.
    pub fn read(file: &Path) -> Result<Self> {
        let text = read_output(file)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not what the contract says: {text}", file.display()))
    }

    /// The counter of this name.
    pub fn counter(&self, name: &str) -> Result<&Event> {
        let counters = &self.header.counters;
        counters
            .iter()
            .find(|counter| counter.name == name)
            .with_context(|| format!("no counter {name} in {counters:?}"))
    }

    /// The function of this name, given without its path.
    pub fn function(&self, name: &str) -> Result<&Function> {
        self.functions
            .iter()
            .find(|function| is_function(&function.name, name))
            .with_context(|| format!("the report has no {name}"))
    }
}
