//! CPUs that go and come while sampling.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use bpfprof_tests::restore::Setting;
use bpfprof_tests::truth::function_time_holds;
use bpfprof_tests::{Bpfprof, Report, host};
use rustix::process::Signal;

const TEST: &str = "hotplug::a_cpu_goes_and_comes";
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

#[test]
fn a_cpu_goes_and_comes() -> Result<()> {
    if !Path::new(ONLINE).exists() {
        return host::skip(TEST, "CPU 1 cannot be taken offline here");
    }
    let cpu = Setting::of(ONLINE)?;
    if cpu.set("0").is_err() {
        return host::skip(TEST, "the kernel does not let CPU 1 go offline");
    }
    cpu.set("1")?;

    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let mut run = Bpfprof::clock(["--all"]).output(&json).start()?;
    run.sample_for(Duration::ZERO)?;
    spin_on_cpu_1("alpha")?;
    cpu.set("0")?;
    thread::sleep(Duration::from_millis(500));
    cpu.set("1")?;
    // It has to be noticed first.
    thread::sleep(Duration::from_millis(1500));
    spin_on_cpu_1("beta")?;
    run.signal(Signal::INT)?;
    let ended = run.wait()?;
    ensure!(ended.code() == Some(0), "{}", ended.stderr);
    let report = Report::read(&json)?;
    function_time_holds(&report, "spin_alpha", Duration::from_millis(500))?;
    function_time_holds(&report, "spin_beta", Duration::from_millis(500))
}

fn spin_on_cpu_1(name: &str) -> Result<()> {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "1"]).arg(host::workload("spin")).args([name, "0.5"]);
    ensure!(pinned.status()?.success(), "{pinned:?} failed");
    Ok(())
}
