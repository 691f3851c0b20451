//! The header: what was recorded, and all that limits what it says.

use serde::Serialize;

/// Goes with every output.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Header {
    /// Version of bpfprof.
    pub version: String,
    /// What was sampled, in words.
    pub target: String,
    /// The event.
    pub event: EventInfo,
    /// Time that was sampled, in seconds.
    pub seconds: f64,
    /// CPUs that were sampled at the end.
    pub cpus: usize,
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

/// The event that was really used.
#[derive(Clone, Debug, Default, Serialize)]
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
}

/// Samples that are missing.
#[derive(Clone, Debug, Default, Serialize)]
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
#[derive(Clone, Debug, Default, Serialize)]
pub struct StacksInfo {
    /// Samples with a user stack.
    pub user: u64,
    /// Of these, samples whose stack reaches the first function of its thread.
    pub whole: u64,
    /// The others, by reason, most frequent first.
    pub cut: Vec<(String, u64)>,
}

impl StacksInfo {
    /// Share of user stacks that are whole; `None` without user stacks.
    #[must_use]
    pub fn whole_share(&self) -> Option<f64> {
        (self.user > 0).then(|| self.whole as f64 / self.user as f64)
    }
}

/// How many frames have names.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NamesInfo {
    /// Frames of all samples.
    pub frames: u64,
    /// Of these, frames with the name of a function.
    pub named: u64,
    /// Objects without names for their frames, by share of samples.
    pub without_symbols: Vec<ObjectWithoutSymbols>,
}

impl NamesInfo {
    /// Share of frames with names; `None` without frames.
    #[must_use]
    pub fn named_share(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.named as f64 / self.frames as f64)
    }
}

/// An object that gave frames no names.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectWithoutSymbols {
    /// The object.
    pub object: String,
    /// Samples with such a frame in their stack.
    pub samples: u64,
    /// Why, and what helps.
    pub reason: String,
}
