//! Programs that run beside a measurement.

use std::{
    fs,
    io::Write,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::own_memory::peak_megabytes;

/// A program that ends when this is dropped.
pub(super) struct Running(Child);

/// Far above what bpfprof takes to attach its programs.
const ATTACH_LIMIT: Duration = Duration::from_secs(30);

impl Running {
    /// Starts it with nothing to read and its stdout thrown away.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        Self::spawn(command.stdin(Stdio::null()))
    }

    /// Starts a program that reads a line before it does anything, and waits for [`Self::release`].
    pub(super) fn start_waiting(command: &mut Command) -> Result<Self> {
        Self::spawn(command.stdin(Stdio::piped()))
    }

    fn spawn(command: &mut Command) -> Result<Self> {
        let child = command.stdout(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("{:?} cannot be started", command.get_program()))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Gives a waiting program its line.
    pub(super) fn release(&mut self) -> Result<()> {
        let mut stdin = self.0.stdin.take().context("the program does not wait")?;
        stdin.write_all(b"go\n").context("the program has ended before its turn")
    }

    /// Waits until bpfprof has attached its sample program.
    pub(super) fn wait_until_attached(&mut self) -> Result<()> {
        let descriptors = format!("/proc/{}/fd", self.id());
        let started = Instant::now();
        while started.elapsed() < ATTACH_LIMIT {
            let links = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            let mut names = links.filter_map(|link| fs::read_link(link.path()).ok());
            if names.any(|name| name.as_os_str() == "anon_inode:bpf_link") {
                return Ok(());
            }
            ensure!(!self.has_ended()?, "bpfprof ended before it sampled");
            thread::sleep(Duration::from_millis(5));
        }
        bail!("bpfprof attached nothing within {} s", ATTACH_LIMIT.as_secs());
    }

    /// Does what one Ctrl-C does.
    pub(super) fn interrupt(&self) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::INT).context("a program cannot be interrupted")
    }

    /// Kills it.
    pub(super) fn stop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait().context("a program cannot be waited for")?.is_some())
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) -> Result<()> {
        let status = self.0.wait().context("a program cannot be waited for")?;
        ensure!(status.success(), "a program failed ({status})");
        Ok(())
    }

    /// Waits for its end and returns its peak memory, but for what it grew by in its last milliseconds.
    pub(super) fn wait_for_peak(&mut self) -> Result<f64> {
        let mut peak = 0.0f64;
        // A process that has ended and is not waited for has no memory.
        while let Ok(megabytes) = peak_megabytes(self.id()) {
            peak = peak.max(megabytes);
            thread::sleep(Duration::from_millis(10));
        }
        self.wait()?;
        Ok(peak)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
