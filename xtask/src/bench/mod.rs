//! `bench`: what bpfprof costs and how complete its stacks are, beside its budgets and beside perf, in one run.
//!
//! Figures are medians of rounds. A machine that does other work moves them: what is compared is measured in turn.

mod bpf_time;
mod cgroup;
mod cold_build;
mod cpu_time;
mod mode;
mod own_memory;
mod project;
mod recording;
mod running;
mod short_processes;
mod slowdown;
mod soak;
mod table_cache;
mod tally;
mod upkeep;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    cargo::cargo, figure::Figure, privilege::Privilege, process::run as run_command, workloads,
    workspace::Workspace,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to measure; without any, everything but `soak`
    measurements: Vec<Measurement>,
    /// How often each thing that is compared is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many minutes `soak` takes
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Measurement {
    /// Time of the BPF program for each sample and frame, from the kernel's statistics
    BpfTime,
    /// Complete stacks of `cargo build` from cold, launched, with --all, --cgroup and --pid; bpfprof's memory then, and its time to the outputs
    ColdBuild,
    /// What `cargo build` takes longer under bpfprof and under perf
    Slowdown,
    /// CPU time and memory of bpfprof while it samples one process, and memory for 500
    Upkeep,
    /// Samples lost and complete stacks with short processes, and with copies of a program, launched and with --all
    ShortProcesses,
    /// Complete stacks, memory and descriptors minute by minute of a long --all, while programs come and go; only when it is named
    Soak,
}

impl Options {
    /// Those that are named, else all but the long one.
    fn chosen(&self) -> Vec<Measurement> {
        if !self.measurements.is_empty() {
            return self.measurements.clone();
        }
        let all = <Measurement as clap::ValueEnum>::value_variants();
        all.iter().copied().filter(|measurement| *measurement != Measurement::Soak).collect()
    }
}

/// What the measurements share.
struct Bench<'a> {
    workspace: &'a Workspace,
    /// For all that is built and written.
    folder: PathBuf,
    rounds: usize,
    /// Of the soak.
    minutes: u32,
}

/// Measures and prints a line for each figure; whether all are within their budgets.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if Privilege::acquire() != Privilege::Root {
        bail!("the benchmarks sample the whole machine and read the kernel's statistics: run them as root");
    }
    run_command(cargo(workspace).args(["build", "--release", "--package", "bpfprof"]))?;
    workloads::build_all(workspace)?;
    let bench = Bench {
        workspace,
        folder: workspace.target().join("bench"),
        rounds: options.rounds as usize,
        minutes: options.minutes,
    };
    fs::create_dir_all(&bench.folder)
        .with_context(|| format!("{} cannot be created", bench.folder.display()))?;
    let mut within = true;
    for measurement in options.chosen() {
        eprintln!("xtask: measuring {measurement:?}");
        let figures =
            bench.measure(measurement).with_context(|| format!("{measurement:?} cannot be measured"))?;
        for figure in &figures {
            println!("{figure}");
            within &= figure.is_within_budget();
        }
    }
    Ok(within)
}

impl Bench<'_> {
    fn measure(&self, measurement: Measurement) -> Result<Vec<Figure>> {
        match measurement {
            Measurement::BpfTime => bpf_time::measure(self),
            Measurement::ColdBuild => cold_build::measure(self),
            Measurement::Slowdown => slowdown::measure(self),
            Measurement::Upkeep => upkeep::measure(self),
            Measurement::ShortProcesses => short_processes::measure(self),
            Measurement::Soak => soak::measure(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Measurement, Options};

    #[test]
    fn a_soak_is_asked_for_by_name() {
        let chosen = |measurements| Options { measurements, rounds: 1, minutes: 1 }.chosen();
        let unnamed = chosen(Vec::new());
        assert!(unnamed.contains(&Measurement::ColdBuild) && !unnamed.contains(&Measurement::Soak));
        assert_eq!(chosen(vec![Measurement::Soak]), [Measurement::Soak]);
    }
}
