//! Running bpfprof: its command line, its end and what it wrote.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::folded::Folded;
use crate::host;

/// A command line of bpfprof.
#[derive(Debug)]
pub struct Bpfprof {
    command: Command,
}

/// bpfprof at work. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How bpfprof ended.
    pub status: ExitStatus,
    /// All it wrote to stdout, which was no terminal.
    pub stdout: String,
    /// All it wrote to stderr, which was no terminal.
    pub stderr: String,
}

/// Longest time that a run may take before it counts as hung: far above any run of these tests.
const HUNG: Duration = Duration::from_secs(90);

impl Bpfprof {
    /// The built binary with these arguments.
    pub fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::through(Command::new(host::bpfprof())).args(arguments)
    }

    /// The built binary, sampling CPU time in nanoseconds also where there are cycles, with these arguments.
    pub fn clock<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::new(["-e", "cpu-clock"]).args(arguments)
    }

    /// A command that ends up in bpfprof, such as `taskset -c 1 bpfprof …`.
    #[must_use]
    pub fn through(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that a signal to all of it does not meet the test.
        command.process_group(0);
        Self { command }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds `-o FILE`.
    #[must_use]
    pub fn output(self, file: &Path) -> Self {
        self.args([OsStr::new("-o"), file.as_os_str()])
    }

    /// Adds `--` and a workload of this package with its arguments.
    #[must_use]
    pub fn workload(self, name: &str, arguments: &[&str]) -> Self {
        self.args(["--"]).args([host::workload(name)]).args(arguments)
    }

    /// Adds `-- sh -c SCRIPT`, with the workloads' folder in front of PATH.
    #[must_use]
    pub fn shell(mut self, script: &str) -> Self {
        let workloads = host::workload("");
        let path = std::env::var("PATH").unwrap_or_default();
        self.command.env("PATH", format!("{}:{path}", workloads.display()));
        self.args(["--", "sh", "-c", script])
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it, and collects what it writes.
    pub fn start(mut self) -> Result<Running> {
        let mut child = self.command.spawn().with_context(|| format!("starting {:?}", self.command))?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Ok(Running { child, stdout, stderr })
    }

    /// Runs it to its end.
    pub fn run(self) -> Result<Finished> {
        self.start()?.wait()
    }

    /// Runs it to its end, which must be status 0.
    pub fn succeed(self) -> Result<Finished> {
        let command = format!("{:?}", self.command);
        let finished = self.run()?;
        ensure!(finished.code() == Some(0), "{command} ended with {}:\n{}", finished.status, finished.stderr);
        Ok(finished)
    }
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the events are open and the sample program is attached to them.
    pub fn wait_until_attached(&mut self) -> Result<()> {
        let fds = format!("/proc/{}/fd", self.child.id());
        let started = Instant::now();
        while started.elapsed() < HUNG {
            let links = fs::read_dir(&fds).into_iter().flatten().flatten();
            let mut names = links.filter_map(|link| fs::read_link(link.path()).ok());
            if names.any(|name| name.as_os_str() == "anon_inode:bpf_link") {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("bpfprof ended with {status} before it sampled:\n{}", text(self.stderr.take())?);
            }
            thread::sleep(Duration::from_millis(5));
        }
        bail!("bpfprof attached nothing within {HUNG:?}");
    }

    /// Waits until samples of at least `time` are in its tables.
    pub fn sample_for(&mut self, time: Duration) -> Result<()> {
        self.wait_until_attached()?;
        // Between attaching and enabling lies the reading of /proc.
        thread::sleep(Duration::from_millis(300) + time);
        Ok(())
    }

    /// Sends bpfprof alone a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid(), signal).context("signalling bpfprof")
    }

    /// Sends bpfprof and its command a signal, as Ctrl-C on a terminal does.
    pub fn signal_group(&self, signal: Signal) -> Result<()> {
        kill_process_group(self.pid(), signal).context("signalling bpfprof's process group")
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<Finished> {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if started.elapsed() > HUNG {
                self.child.kill()?;
                self.child.wait()?;
                bail!("bpfprof did not end within {HUNG:?}");
            }
            thread::sleep(Duration::from_millis(5));
        };
        Ok(Finished { status, stdout: text(self.stdout.take())?, stderr: text(self.stderr.take())? })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing to do about a failure: it has most likely ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Exit status, `None` when a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended it.
    #[must_use]
    pub fn killed_by(&self) -> Option<i32> {
        self.status.signal()
    }

    /// stdout as folded stacks.
    pub fn folded(&self) -> Result<Folded> {
        Folded::parse(&self.stdout)
    }

    /// Fails unless it ended with this status, stdout stayed empty, and stderr has a line with each of `words`, whatever their case.
    pub fn expect_refusal(&self, code: i32, words: &[&str]) -> Result<()> {
        ensure!(self.code() == Some(code), "status {code} was due, came {}:\n{}", self.status, self.stderr);
        ensure!(self.stdout.is_empty(), "stdout carries data only, but has:\n{}", self.stdout);
        let stderr = self.stderr.to_lowercase();
        for word in words {
            ensure!(stderr.contains(&word.to_lowercase()), "stderr does not say `{word}`:\n{}", self.stderr);
        }
        Ok(())
    }
}

/// Reads a pipe in a thread of its own, or bpfprof would block on a full one.
fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe leaves what came before it.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn text(collected: Option<JoinHandle<Vec<u8>>>) -> Result<String> {
    let Some(collected) = collected else { return Ok(String::new()) };
    let bytes = collected.join().ok().context("the thread that reads a pipe panicked")?;
    String::from_utf8(bytes).context("bpfprof wrote something other than UTF-8")
}

/// Reads a whole output file.
pub fn read_output(file: &Path) -> Result<String> {
    let mut content = String::new();
    let mut opened = File::open(file).with_context(|| format!("no output {}", file.display()))?;
    opened.read_to_string(&mut content).with_context(|| format!("reading {}", file.display()))?;
    Ok(content)
}
