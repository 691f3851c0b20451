//! `demo`: profiles a bundled workload, and shows what bpfprof makes of it.

use std::{env, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    cargo::cargo, privilege::Privilege, process::run as run_command, workloads, workspace::Workspace,
};

const WORKLOAD: &str = "matrix";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long the workload runs, in whole seconds or minutes: 5s, 1m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_seconds)]
    duration: u64,
    /// The folder for the flame graph, the folded stacks and the table
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self { duration: 5, out: PathBuf::from("demo") }
    }
}

/// Builds bpfprof and the workload, runs one under the other, and says where the results are.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    run_command(cargo(workspace).args(["build", "--release", "--package", "bpfprof"]))?;
    let workload = workloads::build_one(workspace, WORKLOAD)?;
    let out = env::current_dir().context("the current folder is gone")?.join(&options.out);
    fs::create_dir_all(&out).with_context(|| format!("{} cannot be created", out.display()))?;
    let results = [
        (out.join("flame.svg"), "flame graph, for a browser"),
        (out.join("stacks.folded"), "folded stacks, for inferno and its like"),
        (out.join("table.json"), "the table and its header, for programs"),
    ];
    for (file, _) in &results {
        // A result of an earlier run must not pass for one of this run.
        let _ = fs::remove_file(file);
    }

    let privilege = Privilege::acquire();
    let mut profile = match privilege.command(workspace.bpfprof()) {
        Ok(command) => command,
        Err(reason) => bail!("the demo samples the CPU through the kernel and needs root, but {reason}"),
    };
    for (file, _) in &results {
        profile.arg("-o").arg(file);
    }
    profile.arg("--").arg(workload).args(["--seconds", &options.duration.to_string()]);
    eprintln!("xtask: profiling the workload `{WORKLOAD}` for {} s", options.duration);
    run_command(&mut profile)?;

    eprintln!();
    for (file, what) in &results {
        if !fs::metadata(file).is_ok_and(|written| written.len() > 0) {
            bail!("bpfprof ended well but left {} empty or unwritten", file.display());
        }
        eprintln!("{}: {what}", file.display());
    }
    let sudo = if privilege == Privilege::Root { "" } else { "sudo " };
    eprintln!(
        "Next, a program of your own: {sudo}{} --pid PID --duration 10s -o flame.svg",
        workspace.bpfprof().display()
    );
    Ok(())
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "expected whole seconds or minutes, such as 5s or 1m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_seconds;

    #[test]
    fn durations_are_whole_and_positive() {
        assert_eq!(parse_seconds("5s"), Ok(5));
        assert_eq!(parse_seconds("7"), Ok(7));
        assert_eq!(parse_seconds("2m"), Ok(120));
        for wrong in ["", "0s", "500ms", "1.5s", "-1s", "s", "400000000000000000m"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
