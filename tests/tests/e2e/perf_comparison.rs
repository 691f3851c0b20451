//! The same call paths as `perf record --call-graph dwarf`, where its copies of the stack are deep enough.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::folded::is_kernel;
use bpfprof_tests::host;

use crate::unwind::{CLOCK, OPTIMISED, compile, path, record};

const MILLISECONDS: &str = "4000";

/// Samples by the functions from `main` to `work`.
type Paths = HashMap<Vec<String>, u64>;

#[test]
fn call_paths_have_the_shares_that_perf_gives_them() -> Result<()> {
    let Some(program) = compile("paths", OPTIMISED)? else { return Ok(()) };
    let Some(theirs) = seen_by_perf(program.path())? else {
        return host::skip("perf_comparison::call_paths_have_the_shares_that_perf_gives_them", "no `perf`");
    };
    let samples = [CLOCK, &["--weight", "samples", "-F", "499"]].concat();
    let recorded = record(program.path(), &[MILLISECONDS], &samples)?;
    let mut ours = Paths::new();
    for line in &recorded.folded.lines {
        let user = line.frames.iter().filter(|frame| !is_kernel(frame)).map(String::as_str);
        *ours.entry(from_main_to_work(user)).or_default() += line.weight;
    }
    for expected in
        [&["main", "left", "work"][..], &["main", "right", "work"], &["main", "right", "deeper", "work"]]
    {
        let (ours, theirs) = (Share::of(&ours, expected), Share::of(&theirs, expected));
        // One in 100,000 runs of two independent samples is further off; samples at equal distances are better than that.
        let allowed = 4.5 * (ours.variance() + theirs.variance()).sqrt();
        let apart = (ours.value() - theirs.value()).abs();
        ensure!(apart < allowed, "{expected:?}: {ours:?} against perf's {theirs:?}");
    }
    Ok(())
}

#[derive(Debug)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    fn of(paths: &Paths, path: &[&str]) -> Self {
        let part = paths.iter().filter(|(found, _)| found.iter().eq(path)).map(|(_, samples)| samples);
        Self { part: part.sum(), whole: paths.values().sum() }
    }

    fn value(&self) -> f64 {
        self.part as f64 / self.whole.max(1) as f64
    }

    fn variance(&self) -> f64 {
        self.value() * (1.0 - self.value()) / self.whole.max(1) as f64
    }
}

/// `None` when there is no perf.
fn seen_by_perf(program: &Path) -> Result<Option<Paths>> {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("perf.data");
    let data = path(&data)?;
    let how = ["record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf", "-o", data, "--"];
    run(Command::new("perf").args(how).arg(program).arg(MILLISECONDS))?;
    let script = run(Command::new("perf").args(["script", "-i", data, "--no-inline", "-F", "ip,sym"]))?;
    let mut paths = Paths::new();
    for stack in script.split("\n\n").filter(|stack| !stack.trim().is_empty()) {
        let symbols =
            stack.lines().rev().filter_map(|line| line.trim().split_once(' ')).map(|(_, symbol)| symbol);
        *paths.entry(from_main_to_work(symbols)).or_default() += 1;
    }
    Ok(Some(paths))
}

/// Outermost function first.
fn from_main_to_work<'a>(frames: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut path: Vec<String> = frames.skip_while(|frame| *frame != "main").map(str::to_owned).collect();
    if let Some(work) = path.iter().position(|frame| frame == "work") {
        path.truncate(work + 1);
    }
    path
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("reading what {command:?} says"))
}
