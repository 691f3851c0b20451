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
    /// What to measure; everything without any
    measurements: Vec<Measurement>,
    /// How often each thing that is compared is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
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
}

/// What the measurements share.
struct Bench<'a> {
    workspace: &'a Workspace,
    /// For all that is built and written.
    folder: PathBuf,
    rounds: usize,
}

/// Measures and prints a line for each figure; whether all are within their budgets.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if Privilege::acquire() != Privilege::Root {
        bail!("the benchmarks sample the whole machine and read the kernel's statistics: run them as root");
    }
    run_command(cargo(workspace).args(["build", "--release", "--package", "bpfprof"]))?;
    workloads::build_all(workspace)?;
    let bench =
        Bench { workspace, folder: workspace.target().join("bench"), rounds: options.rounds as usize };
    fs::create_dir_all(&bench.folder)
        .with_context(|| format!("{} cannot be created", bench.folder.display()))?;
    let all = <Measurement as clap::ValueEnum>::value_variants();
    let chosen = if options.measurements.is_empty() { all } else { &options.measurements };
    let mut within = true;
    for &measurement in chosen {
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
        }
    }
}
