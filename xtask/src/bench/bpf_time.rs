//! How long the sample program runs, by the kernel's own statistics (`kernel.bpf_stats_enabled`), against the depth of the stack.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Bench, running::Running};
use crate::figure::{Figure, median};

/// Calls between `main` and the function that computes.
const DEPTHS: [u32; 4] = [10, 30, 105, 405];

/// DESIGN §9, in nanoseconds.
const BUDGET_SAMPLE: f64 = 1500.0;
const BUDGET_FRAME: f64 = 120.0;

/// `BPF_PROG_TYPE_PERF_EVENT` (`include/uapi/linux/bpf.h`).
const PERF_EVENT_PROGRAM: u64 = 7;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let _statistics = Statistics::enable()?;
    let mut figures = Vec::new();
    for (walk, flag) in [("dwarf", "-fomit-frame-pointer"), ("fp", "-fno-omit-frame-pointer")] {
        let program = bench.c_workload("deep", &[flag])?;
        let mut measured = DEPTHS.map(|_| Vec::new());
        for _ in 0..bench.rounds {
            for (figures, depth) in measured.iter_mut().zip(DEPTHS) {
                figures.push(nanoseconds_per_sample(bench, &program, depth, walk)?);
            }
        }
        // `main`, what calls it in the C library (2), `_start`, and the function that computes.
        let points: Vec<(f64, f64)> =
            DEPTHS.iter().map(|depth| f64::from(depth + 5)).zip(measured.map(median)).collect();
        let (sample, frame) = line_through(&points);
        let within = points.iter().all(|(frames, ns)| *ns <= BUDGET_SAMPLE + BUDGET_FRAME * frames);
        let times: Vec<String> =
            points.iter().map(|(frames, ns)| format!("{frames}: {:.1}", ns / 1000.0)).collect();
        figures.push(
            Figure::plain(
                format!("BPF time, --unwind {walk}"),
                format!("{:.1} µs + {frame:.0} ns a frame", sample / 1000.0),
            )
            .budget(format!("{:.1} µs + {BUDGET_FRAME} ns a frame", BUDGET_SAMPLE / 1000.0), within),
        );
        figures.push(Figure::plain("    µs by number of frames", times.join(", ")));
    }
    Ok(figures)
}

/// The mean over two seconds.
fn nanoseconds_per_sample(bench: &Bench<'_>, program: &Path, depth: u32, walk: &str) -> Result<f64> {
    // On a CPU of its own: the program ends early for samples of others.
    let cpu = thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1).to_string();
    let mut pinned = Command::new("taskset");
    let mut target =
        Running::start(pinned.args(["-c", &cpu]).arg(program).args([&depth.to_string(), "60000"]))?;
    let (mut bpfprof, _) = bench.bpfprof(2999);
    bpfprof.args(["--unwind", walk, "-C", &cpu, "--pid", &target.id().to_string()]);
    let profiler = Running::start(&mut bpfprof)?;
    // Until its table is in place.
    thread::sleep(Duration::from_millis(1500));
    let before = sample_program(profiler.id())?;
    thread::sleep(Duration::from_secs(2));
    let after = sample_program(profiler.id())?;
    target.stop();
    let runs = after.runs - before.runs;
    ensure!(runs > 1000, "the sample program ran {runs} times in two seconds");
    Ok((after.nanoseconds - before.nanoseconds) as f64 / runs as f64)
}

/// What the kernel says of a program.
#[derive(Clone, Copy, Default)]
struct Runs {
    nanoseconds: u64,
    runs: u64,
}

/// The perf-event program that this process holds and that ran most.
fn sample_program(process: u32) -> Result<Runs> {
    let folder = format!("/proc/{process}/fdinfo");
    let descriptors = fs::read_dir(&folder).with_context(|| format!("{folder} cannot be read"))?;
    let infos = descriptors.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let programs = infos.filter_map(|info| {
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        (field("prog_type:")? == PERF_EVENT_PROGRAM)
            .then_some(Runs { nanoseconds: field("run_time_ns:")?, runs: field("run_cnt:")? })
    });
    programs.max_by_key(|program| program.runs).context("bpfprof holds no sample program")
}

/// Least squares: where the line begins, and its slope.
fn line_through(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = covariance / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    (mean_y - slope * mean_x, slope)
}

/// The kernel measures programs while this lives.
struct Statistics {
    former: String,
}

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl Statistics {
    fn enable() -> Result<Self> {
        let former = fs::read_to_string(SWITCH).with_context(|| format!("{SWITCH} cannot be read"))?;
        fs::write(SWITCH, "1").with_context(|| format!("{SWITCH} cannot be written"))?;
        Ok(Self { former })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        let _ = fs::write(SWITCH, &self.former);
    }
}

#[cfg(test)]
mod tests {
    use super::line_through;

    #[test]
    fn a_line_goes_through_its_points() {
        let (begin, slope) = line_through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert!((begin - 3.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
    }
}
