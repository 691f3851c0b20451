//! Starting a command: stopped, until sampling is armed.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::readiness::watch;
use crate::types::Tgid;

/// A process that waits before it executes its program.
pub(super) struct Command {
    /// Its number.
    pub tgid: Tgid,
    /// The program, for messages.
    pub program: String,
    go: io::PipeWriter,
    spawning: JoinHandle<io::Result<Child>>,
}

/// A command that could not be executed.
#[derive(Debug, thiserror::Error)]
#[error("cannot run `{program}`: {error}")]
pub(super) struct CannotRun {
    program: String,
    #[source]
    error: io::Error,
}

impl CannotRun {
    /// As shells have it: 127 when there is no such program, 126 when it cannot be executed.
    pub(super) fn exit_status(&self) -> u8 {
        if self.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }
}

impl Command {
    /// Forks the process. While folded stacks go to stdout, the command's own output goes to stderr.
    pub(super) fn prepare(words: &[OsString], stdout_is_taken: bool) -> anyhow::Result<Self> {
        let (program, arguments) = words.split_first().context("no command was given")?;
        let pipe = || io::pipe().context("cannot make a pipe for the command");
        let ((mut ready, mut is_ready), (mut wait_for_go, go)) = (pipe()?, pipe()?);
        let parents_end = go.as_raw_fd();
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        if stdout_is_taken {
            let stderr = io::stderr();
            let stderr = rustix::io::fcntl_dupfd_cloexec(&stderr, 3).context("cannot duplicate stderr")?;
            command.stdout(Stdio::from(stderr));
        }
        let wait = move || {
            // The copy of the parent's end must go, or the death of the parent would never be seen.
            // SAFETY: the forked child owns its copy of the descriptor and nothing else in it uses it.
            unsafe { libc::close(parents_end) };
            is_ready.write_all(&std::process::id().to_ne_bytes())?;
            let mut go = [0];
            wait_for_go.read_exact(&mut go)
        };
        // SAFETY: the closure only makes system calls on descriptors it owns, which is allowed between fork and exec.
        unsafe { command.pre_exec(wait) };
        // Spawning returns when the program is executed, so it has a thread of its own.
        let spawning = thread::spawn(move || command.spawn());
        let mut number = [0; 4];
        ready.read_exact(&mut number).context("cannot start a process for the command")?;
        let program = program.to_string_lossy().into_owned();
        Ok(Self { tgid: Tgid(u32::from_ne_bytes(number)), program, go, spawning })
    }

    /// The file that `execvp(3)` will find for its program.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let program = Path::new(&self.program);
        if program.components().count() > 1 || self.program.contains('/') {
            return Some(program.to_path_buf());
        }
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
    }

    /// Opens what is needed to see it end. The program is not executed yet.
    pub(super) fn start(self) -> Result<Running, CannotRun> {
        let Self { tgid, program, go, spawning } = self;
        let pidfd =
            pidfd(tgid).and_then(watch).map_err(|error| CannotRun { program: program.clone(), error })?;
        Ok(Running { tgid, program, go: Some(go), state: State::Starting(spawning), pidfd })
    }
}

/// A command on its way.
pub(super) struct Running {
    tgid: Tgid,
    program: String,
    go: Option<io::PipeWriter>,
    state: State,
    pidfd: AsyncFd<OwnedFd>,
}

enum State {
    Starting(JoinHandle<io::Result<Child>>),
    Started(Child),
    Failed,
}

impl Running {
    /// Lets it execute its program.
    pub(super) fn release(&mut self) {
        if let Some(mut go) = self.go.take() {
            // It can only have been killed meanwhile, which the wait for it reports.
            let _ = go.write_all(&[1]);
        }
    }

    /// Returns when it has ended.
    pub(super) async fn ended(&self) {
        // An error would mean that readiness cannot be watched; then the wait for its status blocks instead.
        let _ = self.pidfd.readable().await;
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        let mut fds = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::time::Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// What sends it signals.
    pub(super) fn passer(&self) -> SignalPasser {
        SignalPasser { tgid: self.tgid }
    }

    /// Returns when its program is executed, or could not be.
    ///
    /// To be called after [`Self::release`].
    pub(super) fn executed(&mut self) -> Result<(), CannotRun> {
        let State::Starting(spawning) = std::mem::replace(&mut self.state, State::Failed) else {
            return Ok(());
        };
        let spawned = spawning.join().unwrap_or_else(|_| Err(io::Error::other("its starter failed")));
        let child = spawned.map_err(|error| CannotRun { program: self.program.clone(), error })?;
        self.state = State::Started(child);
        Ok(())
    }

    /// Its exit status, 128 + signal when it was killed.
    pub(super) async fn wait(mut self) -> anyhow::Result<u8> {
        self.ended().await;
        let State::Started(child) = &mut self.state else { return Ok(1) };
        let status = child.wait().with_context(|| format!("cannot get the status of `{}`", self.program))?;
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(u8::try_from(code & 0xff).unwrap_or(1))
    }
}

/// Hands signals on to a command.
#[derive(Clone, Copy)]
pub(super) struct SignalPasser {
    tgid: Tgid,
}

impl SignalPasser {
    /// Sends it a signal that bpfprof got, unless a terminal has sent it one already.
    ///
    /// Its number is not used again before bpfprof asks for its status.
    pub(super) fn pass_on(self, signal: Signal) {
        if signal == Signal::INT && is_in_foreground() {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.tgid.0.cast_signed()) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }
}

/// A descriptor that becomes readable when the process ends, whatever becomes of its number.
pub(super) fn pidfd(tgid: Tgid) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(tgid.0.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Whether Ctrl-C on our terminal reaches this process, and so its children too.
fn is_in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
