//! Programs that run beside a measurement.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A program that ends when this is dropped.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("{:?} cannot be started", command.get_program()))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
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
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
