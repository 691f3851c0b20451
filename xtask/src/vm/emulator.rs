//! Boots a kernel in QEMU, all in software, so that it is the same on every host.

use std::{
    fs::File,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    lane::{Lane, Machine, Time},
    qemu::Qemu,
};

/// Some ten times what a guest takes.
const TIME_LIMIT: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(50);

/// Runs the guest until it powers off; its console goes to the file.
pub(super) fn boot(qemu: &Qemu, lane: Lane, kernel: &Path, initramfs: &Path, console: &Path) -> Result<()> {
    let output = File::create(console).with_context(|| format!("{} cannot be written", console.display()))?;
    let machine = lane.machine();
    let mut command = qemu.command()?;
    command.args(hardware(machine)).args(["-smp", &lane.cpus().to_string()]).args(clock(lane.time()));
    command.args(["-accel", "tcg", "-m", "1G", "-no-reboot"]);
    command.args(["-nodefaults", "-display", "none", "-monitor", "none", "-serial", "stdio"]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
    // On a loaded host an emulated x86 may get its first timer interrupts too late for the kernel's check, which then panics.
    command.arg("-append").arg(format!("console={} quiet panic=-1 no_timer_check", serial_port(machine)));
    let mut guest = command
        .stdin(Stdio::null())
        .stdout(output)
        .spawn()
        .with_context(|| format!("`{}` cannot be started", qemu.name()))?;
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        if let Some(status) = guest.try_wait().context("QEMU cannot be waited for")? {
            if status.success() {
                return Ok(());
            }
            bail!("`{}` failed ({status})", qemu.name());
        }
        if Instant::now() >= deadline {
            // It may have ended this very moment.
            let _ = guest.kill();
            guest.wait().context("QEMU cannot be waited for")?;
            bail!("the guest did not end within {} s", TIME_LIMIT.as_secs());
        }
        thread::sleep(POLL);
    }
}

/// Board and processor: an x86 without a PMU, an Arm server core with one.
fn hardware(machine: Machine) -> [&'static str; 4] {
    match machine {
        Machine::X86_64 => ["-M", "q35", "-cpu", "Nehalem"],
        Machine::Aarch64 => ["-M", "virt", "-cpu", "neoverse-n1"],
    }
}

/// The host's clock, or cycles of a nanosecond that are counted off by instructions, four to each. While the guest sleeps its time leaps to
/// the next timer.
fn clock(time: Time) -> &'static [&'static str] {
    match time {
        Time::Host => &[],
        Time::Instructions => &["-icount", "shift=2,sleep=off"],
    }
}

fn serial_port(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "ttyS0",
        Machine::Aarch64 => "ttyAMA0",
    }
}
