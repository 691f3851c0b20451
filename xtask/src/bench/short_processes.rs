//! Processes of milliseconds, as fast as they can be made.

use anyhow::Result;

use super::{Bench, figure::Figure, recording::Recording};
use crate::process::run;

/// Processes, each of 1 ms.
const PROCESSES: u32 = 4000;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let program = bench.c_workload("deep", &["-fomit-frame-pointer"])?;
    let (mut bpfprof, json) = bench.bpfprof(997);
    let script = r#"i=0; while [ $i -lt "$0" ]; do "$1" 20 1 & "$1" 20 1; i=$((i + 2)); done; wait"#;
    bpfprof.arg("--").args(["sh", "-c", script, &PROCESSES.to_string()]).arg(&program);
    run(&mut bpfprof)?;
    let recording = Recording::read(&json)?;
    let header = &recording.header;
    let lost = 100.0 * header.lost.samples as f64 / (header.samples + header.lost.samples).max(1) as f64;
    let whole = recording.whole_percent();
    Ok(vec![
        Figure::plain(
            format!("samples lost with {:.0} processes a second", f64::from(PROCESSES) / header.seconds),
            format!("{lost:.3} % of {}", header.samples + header.lost.samples),
        )
        .budget("0.1 %", lost < 0.1),
        Figure::plain(
            "    counted by the event, never delivered",
            format!("{:.3} %", header.lost.undelivered * 100.0),
        ),
        Figure::plain("    whole user stacks", format!("{whole:.1} %")).budget("98 %", whole >= 98.0),
    ])
}
