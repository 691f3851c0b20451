//! Processes that are profiled, and what `/proc` says about them.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::host;

/// A process started by the test, leader of its own group. The group is killed when it is dropped.
#[derive(Debug)]
pub struct Target {
    child: Child,
}

impl Target {
    /// Starts a workload of this package, and waits until it has left the start-up of its program.
    pub fn workload(name: &str, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(host::workload(name));
        command.args(arguments);
        Self::start(command, name)
    }

    /// Starts a command, and waits until the process is called `comm` and has used some CPU time.
    pub fn start(mut command: Command, comm: &str) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let target = Self { child: command.spawn().with_context(|| format!("starting {command:?}"))? };
        wait_for(&format!("the start of {comm}"), || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", target.id())).ok()?;
            stat.contains(&format!("({comm})")).then_some(())
        })?;
        Ok(target)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its process id in the form that an option takes.
    #[must_use]
    pub fn pid(&self) -> String {
        self.id().to_string()
    }

    /// The thread of this name.
    pub fn thread(&self, comm: &str) -> Result<String> {
        wait_for(&format!("a thread {comm}"), || {
            let threads = fs::read_dir(format!("/proc/{}/task", self.id())).ok()?;
            let mut ids = threads.flatten().map(|thread| thread.file_name().to_string_lossy().into_owned());
            ids.find(|id| {
                let name = fs::read_to_string(format!("/proc/{}/task/{id}/comm", self.id()));
                name.is_ok_and(|name| name.trim_end() == comm)
            })
        })
    }

    /// Waits until this many children of it are there.
    pub fn wait_for_children(&self, count: usize) -> Result<()> {
        let children = format!("/proc/{0}/task/{0}/children", self.id());
        wait_for(&format!("{count} children"), || {
            let list = fs::read_to_string(&children).ok()?;
            (list.split_whitespace().count() >= count).then_some(())
        })
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<ExitStatus> {
        self.child.wait().context("waiting for the target")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Nothing to do about a failure: they have most likely ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A process id that no process has: that of a child that has ended.
pub fn dead_pid() -> Result<String> {
    let mut child = Command::new("true").spawn().context("starting true")?;
    let id = child.id();
    ensure!(child.wait()?.success(), "true failed");
    Ok(id.to_string())
}

/// Asks again and again until there is an answer, at most 10 s long.
pub fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> Result<T> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if let Some(answer) = answer() {
            return Ok(answer);
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("waited 10 s for {what} in vain")
}
