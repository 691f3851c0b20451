//! Short processes: one program again and again, and copies of it, each a file of its own; and as many as can be started.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    Bench,
    mode::{Mode, Run},
    tally::Tally,
};
use crate::figure::{Figure, median, spread};

/// Samples a second.
const RATE: u32 = 997;

/// Processes of 20 ms, one after the other.
const PROCESSES: u32 = 100;

/// Processes of 1 ms, as fast as they can be started.
const BURST: u32 = 4000;

/// Least share of complete stacks, of 100, and the same with copies, each of which is new to the kernel.
const COMPLETE: f64 = 98.0;
const COMPLETE_OF_COPIES: f64 = 95.0;

/// What the processes run.
#[derive(Clone, Copy)]
enum Work {
    OneProgram,
    Copies,
    Burst,
}

/// The rounds in a mode.
#[derive(Default)]
struct Measured {
    one_program: Tally,
    copies: Tally,
    burst: Tally,
    /// Shares of the event of the burst, of 100.
    undelivered: Vec<f64>,
    /// Processes of the burst.
    per_second: Vec<f64>,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let program = bench.c_workload("deep", &["-fomit-frame-pointer"])?;
    let copies = Copies::make(bench)?;
    let mut measured = [Mode::Launched, Mode::All].map(|mode| (mode, Measured::default()));
    for _ in 0..bench.rounds {
        for (mode, measured) in &mut measured {
            let record =
                |work: Work| mode.record(bench, RATE, |command| work.append(command, &program, &copies.0));
            measured.one_program.add(&record(Work::OneProgram)?);
            measured.copies.add(&record(Work::Copies)?);
            measured.add_burst(&record(Work::Burst)?);
        }
    }
    Ok(measured.iter().flat_map(|(mode, measured)| measured.figures(*mode)).collect())
}

impl Measured {
    fn add_burst(&mut self, run: &Run) {
        let header = &run.recording.header;
        self.burst.add(run);
        self.undelivered.extend(header.lost.undelivered.map(|share| 100.0 * share));
        self.per_second.push(f64::from(BURST) / header.seconds);
    }

    fn figures(&self, mode: Mode) -> Vec<Figure> {
        let one = format!("{PROCESSES} processes of 20 ms, {mode}: complete stacks");
        let copies = format!("{PROCESSES} copies of a program, {mode}: complete stacks");
        let mut figures = self.one_program.figures(one, COMPLETE);
        figures.extend(self.copies.figures(copies, COMPLETE_OF_COPIES));
        figures.push(self.burst.lost(match mode {
            Mode::Launched => {
                format!("{:.0} processes a second, {mode}: samples lost", median(self.per_second.clone()))
            }
            // The recording is longer than the work.
            _ => format!("{BURST} processes of 1 ms, {mode}: samples lost"),
        }));
        if !self.undelivered.is_empty() {
            let shown = spread(&self.undelivered, 3, "%");
            figures.push(Figure::plain("    counted by the event, never delivered", shown));
        }
        figures.extend(self.burst.states("    complete stacks", COMPLETE));
        figures
    }
}

impl Work {
    /// Puts a shell that does it behind a command line.
    fn append(self, command: &mut Command, program: &Path, copies: &Path) {
        let (count, body) = match self {
            Self::OneProgram => (PROCESSES, r#""$1" 20 20; i=$((i + 1))"#),
            Self::Copies => {
                (PROCESSES, r#"cp "$1" "$2/copy_$i"; "$2/copy_$i" 20 20; rm -f "$2/copy_$i"; i=$((i + 1))"#)
            }
            Self::Burst => (BURST, r#""$1" 20 1 & "$1" 20 1; i=$((i + 2))"#),
        };
        let script = format!(r#"i=0; while [ $i -lt "$0" ]; do {body}; done; wait"#);
        command.args(["sh", "-c", &script, &count.to_string()]).args([program, copies]);
    }
}

/// The directory of the copies, removed when this is dropped.
struct Copies(PathBuf);

impl Copies {
    fn make(bench: &Bench<'_>) -> Result<Self> {
        let directory = bench.folder.join("copies");
        fs::create_dir_all(&directory).context("the directory of the copies cannot be created")?;
        Ok(Self(directory))
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
