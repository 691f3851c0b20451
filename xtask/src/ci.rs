//! `ci`: everything a change must pass, in the order in which failures are cheapest to find.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    build_ebpf,
    cargo::{WITHOUT_EBPF, cargo},
    demo,
    process::{run as run_command, stdout_of},
    test_suite,
    test_tally::Report,
    tidy, vm,
    workspace::Workspace,
};

/// Runs the steps up to the first that fails; whether all passed. The last line printed counts the tests.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut run = Run::default();
    let outcome = steps(workspace, &mut run);
    if let Err(error) = &outcome {
        eprintln!("error: {error:#}");
    }
    run.tell();
    println!("{}", run.tests);
    Ok(outcome.is_ok())
}

fn steps(workspace: &Workspace, run: &mut Run) -> Result<()> {
    run.step("lock file", || {
        stdout_of(cargo(workspace).args(["metadata", "--locked", "--format-version=1"])).map(|_| ())
    })?;
    run.step("format", || run_command(cargo(workspace).args(["fmt", "--all", "--check"])))?;
    run.step("tidy", || tidy::run(workspace))?;
    run.step("clippy", || {
        let mut clippy = cargo(workspace);
        clippy.arg("clippy").args(WITHOUT_EBPF).args(["--all-targets", "--", "-D", "warnings"]);
        run_command(&mut clippy)
    })?;
    run.step("clippy of the BPF programs", || build_ebpf::clippy(workspace))?;
    run.step("build-ebpf --check", || build_ebpf::run(workspace, &build_ebpf::Options::check()))?;
    run.step("a second build rebuilds nothing", || second_build_is_fresh(workspace))?;
    let mut tests = Report::default();
    let tested = run.step("test", || {
        tests = test_suite::run(workspace, &test_suite::Options::default())?;
        if !tests.is_success() {
            bail!("the tests did not pass: {tests}");
        }
        Ok(())
    });
    run.tests = tests;
    tested?;
    run.step("demo", || demo::run(workspace, &demo::Options::default()))?;
    run.step("vm", || {
        if !vm::run(workspace, &vm::Options::independent_of_load())? {
            bail!("not every emulated lane passed");
        }
        Ok(())
    })
}

/// What was done so far.
#[derive(Default)]
struct Run {
    steps: Vec<(&'static str, Duration, bool)>,
    tests: Report,
}

impl Run {
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let outcome = work().with_context(|| format!("step `{name}` failed"));
        let elapsed = start.elapsed();
        eprintln!("== {name}: {:.1} s", elapsed.as_secs_f64());
        self.steps.push((name, elapsed, outcome.is_ok()));
        outcome
    }

    fn tell(&self) {
        eprintln!("\nSummary:");
        for (name, elapsed, passed) in &self.steps {
            let verdict = if *passed { "ok" } else { "FAILED" };
            eprintln!("{:>8.1} s  {verdict:<6}  {name}", elapsed.as_secs_f64());
        }
    }
}

/// A build script or a generated file that changes at each build would show here.
fn second_build_is_fresh(workspace: &Workspace) -> Result<()> {
    let build = || {
        let mut command = cargo(workspace);
        command.args(["build", "--release", "--package", "bpfprof"]);
        command
    };
    run_command(&mut build())?;
    let second = stderr_of(build().arg("--verbose").env("CARGO_TERM_COLOR", "never"))?;
    let units: Vec<&str> = second.lines().map(str::trim_start).collect();
    let stale =
        units.iter().find(|line| ["Dirty", "Compiling", "Running"].iter().any(|word| line.starts_with(word)));
    if let Some(line) = stale {
        bail!("a second `cargo build` does work again: {line}");
    }
    if !units.iter().any(|line| line.starts_with("Fresh bpfprof ")) {
        bail!("`cargo build --verbose` does not say that bpfprof is fresh");
    }
    Ok(())
}

fn stderr_of(command: &mut Command) -> Result<String> {
    let output = command.output().context("cargo cannot be started")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("cargo failed ({}):\n{text}", output.status);
    }
    Ok(text)
}
