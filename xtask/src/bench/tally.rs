//! What the rounds of a measurement gave.

use std::collections::BTreeMap;

use super::{mode::Run, recording::Shares};
use crate::figure::{Figure, median, spread};

/// Figures by round.
#[derive(Default)]
pub(super) struct Tally {
    /// Shares of user stacks, of 100.
    complete: Vec<f64>,
    guessed: Vec<f64>,
    truncated: Vec<f64>,
    /// Samples lost, of 100.
    lost: Vec<f64>,
    /// Samples that are not of the work, of 100, where others are sampled too.
    of_others: Vec<f64>,
    peak_megabytes: Vec<f64>,
    /// Seconds from the end of sampling to all outputs.
    pub to_outputs: Vec<f64>,
    /// Truncated stacks of all rounds by reason.
    reasons: BTreeMap<String, u64>,
}

/// Most of 100 samples that may be lost.
const LOST: f64 = 0.1;

/// Most memory, in MB, for up to 500 processes.
const PEAK: f64 = 250.0;

/// Most seconds from the end of sampling to the outputs.
const TO_OUTPUTS: f64 = 2.0;

impl Tally {
    /// Takes a round.
    pub(super) fn add(&mut self, run: &Run) {
        let Shares { complete, guessed, truncated } = run.recording.shares();
        self.complete.push(complete);
        self.guessed.push(guessed);
        self.truncated.push(truncated);
        self.lost.push(run.recording.lost_percent());
        self.of_others.extend(run.of_others);
        self.peak_megabytes.push(run.peak_megabytes);
        self.to_outputs.push(run.to_outputs.as_secs_f64());
        for (reason, samples) in run.recording.truncated() {
            *self.reasons.entry(reason.clone()).or_default() += samples;
        }
    }

    /// All of it. The share of complete stacks comes first and is held against the least that it must be, of 100.
    pub(super) fn figures(&self, what: impl Into<String>, least: f64) -> Vec<Figure> {
        let (peak, to_outputs) = (median(self.peak_megabytes.clone()), median(self.to_outputs.clone()));
        let mut figures = self.states(what, least);
        figures.extend([
            self.lost("    samples lost"),
            Figure::plain("    peak memory of bpfprof", spread(&self.peak_megabytes, 0, "MB"))
                .budget(format!("{PEAK} MB"), peak <= PEAK),
            Figure::plain("    end of sampling to JSON and folded stacks", spread(&self.to_outputs, 2, "s"))
                .budget(format!("{TO_OUTPUTS} s"), to_outputs <= TO_OUTPUTS),
        ]);
        figures
    }

    /// The states of user stacks, complete ones first.
    pub(super) fn states(&self, what: impl Into<String>, least: f64) -> Vec<Figure> {
        let is_kept = median(self.complete.clone()) >= least;
        let mut figures = vec![
            Figure::plain(what, spread(&self.complete, 1, "%")).budget(format!("{least} %"), is_kept),
            Figure::plain("    guessed", spread(&self.guessed, 2, "%")),
            Figure::plain("    truncated", spread(&self.truncated, 2, "%")),
        ];
        if let Some((reason, _)) = self.reasons.iter().max_by_key(|(_, samples)| **samples) {
            figures.push(Figure::plain("    truncated most often", reason.as_str()));
        }
        // A machine that is busy with something else moves all of the above.
        if !self.of_others.is_empty() {
            let shown = spread(&self.of_others, 1, "%");
            figures.push(Figure::plain("    samples of bpfprof and of other programs", shown));
        }
        figures
    }

    /// The share of samples that were lost.
    pub(super) fn lost(&self, what: impl Into<String>) -> Figure {
        Figure::plain(what, spread(&self.lost, 3, "%"))
            .budget(format!("{LOST} %"), median(self.lost.clone()) < LOST)
    }
}
