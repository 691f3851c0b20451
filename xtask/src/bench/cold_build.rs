//! `cargo build` from cold, of rustc's libraries as well, in every way to choose targets: nothing is known of any object.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Bench, mode::Mode, project::Project, running::Running, table_cache::CacheAside, tally::Tally};
use crate::{
    figure::{Figure, median},
    process::{find_on_path, run},
};

/// Samples a second.
const RATE: u32 = 499;

/// Least share of complete stacks without the unwind tables of an earlier run, and with them, of 100.
const FIRST_RUN: f64 = 98.5;
const NEXT_RUN: f64 = 99.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let project = Project::fetch(bench)?;
    let cache = CacheAside::put()?;
    let mut measured = Mode::EVERY.map(|mode| (mode, Tally::default(), Tally::default()));
    for _ in 0..bench.rounds {
        for (mode, first, next) in &mut measured {
            cache.empty();
            for tally in [first, next] {
                project.clean()?;
                let build = |command: &mut Command| project.build_under(command);
                tally.add(&mode.record(bench, RATE, build)?);
            }
        }
    }
    let mut figures = Vec::new();
    for (mode, first, next) in &measured {
        figures.extend(first.figures(format!("cold `cargo build`, {mode}: complete stacks"), FIRST_RUN));
        figures.extend(next.states("  the same with the tables of that run: complete stacks", NEXT_RUN));
    }
    let [(_, launched, _), ..] = &measured;
    figures.push(against_perf(bench, &project, 20.0 * median(launched.to_outputs.clone()))?);
    Ok(figures)
}

/// How long `perf script` takes for a recording of the launched build, against this many seconds.
fn against_perf(bench: &Bench<'_>, project: &Project, least: f64) -> Result<Figure> {
    let what = "`perf script` of the same, launched, with DWARF stacks";
    let limit = Duration::from_secs_f64(least);
    let Some(took) = perf_script(bench, project, limit)? else {
        return Ok(Figure::plain(what, "perf is not installed"));
    };
    let is_kept = took >= limit;
    let shown = if is_kept { "more than that".into() } else { format!("{:.1} s", took.as_secs_f64()) };
    Ok(Figure::plain(what, shown)
        .budget(format!("at least {:.1} s, 20 times bpfprof's", limit.as_secs_f64()), is_kept))
}

/// How long perf takes from its data to text, without folding; it is stopped at the limit.
fn perf_script(bench: &Bench<'_>, project: &Project, limit: Duration) -> Result<Option<Duration>> {
    if find_on_path("perf").is_none() {
        return Ok(None);
    }
    project.clean()?;
    let mut record = bench.perf_record(RATE, "dwarf");
    project.build_under(&mut record);
    run(record.stdout(Stdio::null()).stderr(Stdio::null()))?;
    let mut script = Command::new("perf");
    script.args(["script", "-i"]).arg(bench.perf_data()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut script = Running::start(&mut script)?;
    while begun.elapsed() < limit && !script.has_ended()? {
        thread::sleep(Duration::from_millis(10));
    }
    let took = begun.elapsed();
    drop(script);
    let _ = fs::remove_file(bench.perf_data());
    Ok(Some(took))
}
