//! What bpfprof itself takes while it samples.

use std::{process::Command, thread, time::Duration};

use anyhow::Result;

use super::{Bench, cpu_time, own_memory::peak_megabytes, running::Running};
use crate::figure::Figure;

/// Processes in the large run.
const PROCESSES: u32 = 500;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let program = bench.c_workload("deep", &["-fomit-frame-pointer"])?;
    let seconds = 10;
    let target = Running::start(Command::new(&program).args(["50", "60000"]))?;
    let (mut bpfprof, _) = bench.bpfprof(997);
    let mut one = Running::start(bpfprof.args(["-d", "14s", "--pid", &target.id().to_string()]))?;
    thread::sleep(Duration::from_secs(2));
    let before = cpu_time::of_process(one.id())?;
    thread::sleep(Duration::from_secs(seconds));
    let share = (cpu_time::of_process(one.id())? - before) / seconds as f64 * 100.0;
    let memory = peak_megabytes(one.id())?;
    one.wait()?;
    drop(target);

    let script = r#"i=0; while [ $i -lt "$0" ]; do "$1" 20 60 & i=$((i + 1)); done; wait"#;
    let (mut bpfprof, _) = bench.bpfprof(997);
    bpfprof.arg("--").args(["sh", "-c", script, &PROCESSES.to_string()]).arg(&program);
    let mut many = Running::start(&mut bpfprof)?;
    let memory_of_many = many.wait_for_peak()?;
    Ok(vec![
        Figure::plain("CPU of bpfprof, one process at 997 Hz", format!("{share:.2} % of a core"))
            .budget("1 %", share <= 1.0),
        Figure::plain("    its peak memory", format!("{memory:.0} MB")).budget("80 MB", memory <= 80.0),
        Figure::plain(format!("    with {PROCESSES} processes"), format!("{memory_of_many:.0} MB"))
            .budget("250 MB", memory_of_many <= 250.0),
    ])
}
