//! What bpfprof itself takes while it samples.

use std::{fs, process::Command, thread, time::Duration};

use anyhow::{Context, Result};

use super::{Bench, figure::Figure, running::Running};

/// Processes in the large run.
const PROCESSES: u32 = 500;

/// Clock ticks of `/proc/PID/stat`: the kernel's `USER_HZ` on x86_64 and aarch64.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let program = bench.c_workload("deep", &["-fomit-frame-pointer"])?;
    let seconds = 10;
    let target = Running::start(Command::new(&program).args(["50", "60000"]))?;
    let (mut bpfprof, _) = bench.bpfprof(997);
    let mut one = Running::start(bpfprof.args(["-d", "14s", "--pid", &target.id().to_string()]))?;
    thread::sleep(Duration::from_secs(2));
    let before = cpu_seconds(one.id())?;
    thread::sleep(Duration::from_secs(seconds));
    let share = (cpu_seconds(one.id())? - before) / seconds as f64 * 100.0;
    let memory = peak_megabytes(one.id())?;
    one.wait()?;
    drop(target);

    let script = r#"i=0; while [ $i -lt "$0" ]; do "$1" 20 60 & i=$((i + 1)); done; wait"#;
    let (mut bpfprof, _) = bench.bpfprof(997);
    bpfprof.arg("--").args(["sh", "-c", script, &PROCESSES.to_string()]).arg(&program);
    let mut many = Running::start(&mut bpfprof)?;
    let mut memory_of_many = 0.0f64;
    // The peak goes on growing while names are looked up, until the process is gone.
    while let Ok(megabytes) = peak_megabytes(many.id()) {
        memory_of_many = memory_of_many.max(megabytes);
        thread::sleep(Duration::from_millis(20));
    }
    many.wait()?;
    Ok(vec![
        Figure::plain("CPU of bpfprof, one process at 997 Hz", format!("{share:.2} % of a core"))
            .budget("1 %", share <= 1.0),
        Figure::plain("    its peak memory", format!("{memory:.0} MB")).budget("80 MB", memory <= 80.0),
        Figure::plain(format!("    with {PROCESSES} processes"), format!("{memory_of_many:.0} MB"))
            .budget("250 MB", memory_of_many <= 250.0),
    ])
}

/// User and system time (proc(5), fields 14 and 15 of `stat`).
fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).context("bpfprof has ended")?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(") ").context("/proc/PID/stat is not as expected")?;
    let ticks: f64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}

fn peak_megabytes(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("bpfprof has ended")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes: f64 = peak.context("bpfprof has ended")?.parse().context("VmHWM is no number")?;
    Ok(kilobytes * 1024.0 / 1e6)
}
