//! What the same build takes alone, under bpfprof and under perf.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Bench, project::Project};
use crate::{
    figure::{Figure, median},
    process::find_on_path,
};

/// Who runs beside the build.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Bpfprof,
    PerfFramePointers,
    PerfDwarf,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let project = Project::fetch(bench)?;
    let all = [Beside::Nobody, Beside::Bpfprof, Beside::PerfFramePointers, Beside::PerfDwarf];
    let has_perf = find_on_path("perf").is_some();
    let measured: Vec<Beside> = all
        .into_iter()
        .filter(|beside| has_perf || matches!(beside, Beside::Nobody | Beside::Bpfprof))
        .collect();
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); measured.len()];
    for _ in 0..bench.rounds {
        for (beside, seconds) in measured.iter().zip(&mut seconds) {
            seconds.push(build_seconds(bench, &project, *beside)?);
        }
    }
    let medians: Vec<f64> = seconds.into_iter().map(median).collect();
    let ratio = |wanted: Beside| {
        let at = measured.iter().position(|beside| *beside == wanted)?;
        Some(medians[at] / medians[0])
    };
    let shown =
        |ratio: Option<f64>| ratio.map_or("perf is not installed".to_owned(), |ratio| format!("{ratio:.3}"));
    let bpfprof = ratio(Beside::Bpfprof);
    // Two medians of a shared machine differ by a few per cent.
    let is_kept = match (bpfprof, ratio(Beside::PerfFramePointers)) {
        (Some(bpfprof), Some(perf)) => bpfprof <= perf * 1.03,
        _ => true,
    };
    Ok(vec![
        Figure::plain("`cargo build` under bpfprof at 997 Hz, against alone", shown(bpfprof))
            .budget("not above perf -g", is_kept),
        Figure::plain("    under `perf record -g`", shown(ratio(Beside::PerfFramePointers))),
        Figure::plain("    under `perf record --call-graph dwarf`", shown(ratio(Beside::PerfDwarf))),
    ])
}

/// Seconds from the build's beginning to its end, told by the shell that runs it.
fn build_seconds(bench: &Bench<'_>, project: &Project, beside: Beside) -> Result<f64> {
    project.clean()?;
    let times = bench.folder.join("seconds");
    let mut command = match beside {
        Beside::Nobody => Command::new("env"),
        Beside::Bpfprof => {
            let (mut command, _) = bench.bpfprof(997);
            command.arg("--");
            command
        }
        Beside::PerfFramePointers => bench.perf_record(997, "fp"),
        Beside::PerfDwarf => bench.perf_record(997, "dwarf"),
    };
    command.args(["bash", "-c", r#"TIMEFORMAT=%R; { time "$@" 2>&3; } 3>&2 2> "$0""#]).arg(&times);
    project.build_under(&mut command);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("{:?} cannot be started", command.get_program()))?;
    let _ = std::fs::remove_file(bench.perf_data());
    let said = std::fs::read_to_string(&times).unwrap_or_default();
    said.trim()
        .parse()
        .with_context(|| format!("{:?} did not run the build ({status}): {said}", command.get_program()))
}
