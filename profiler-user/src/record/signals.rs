//! Ctrl-C, SIGTERM, and the end of the terminal.

use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::output::file::remove_unfinished;
use crate::say::say;

/// Exit status of a run that a second signal aborted, as shells give it for SIGINT.
const ABORTED: i32 = 130;

/// The signals that end a run.
pub(super) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// `None` where `nohup` has bpfprof outlive its terminal.
    hangup: Option<unix::Signal>,
    received: usize,
}

/// A signal came before there was anything to write.
#[derive(Debug, thiserror::Error)]
#[error("stopped by {} before sampling began: nothing was recorded", name(*.0))]
pub(super) struct StoppedEarly(Signal);

impl Signals {
    /// Takes them over: from here on none ends the process by itself.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| unix::signal(kind).context("cannot listen for signals");
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let hangup = if is_ignored(Signal::HUP) { None } else { Some(listen(SignalKind::hangup())?) };
        // A file larger than the limit is an error of the output. A handler is not inherited by commands as a signal that is ignored would be.
        drop(listen(SignalKind::from_raw(libc::SIGXFSZ))?);
        Ok(Self { interrupt, terminate, hangup, received: 0 })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            () = hung_up(&mut self.hangup) => Signal::HUP,
        };
        self.received += 1;
        signal
    }

    /// Fails if one came. Work that blocks keeps the event loop from seeing it, so the loop gets a turn.
    pub(super) async fn check(&mut self) -> Result<(), StoppedEarly> {
        match tokio::time::timeout(Duration::from_millis(1), self.next()).await {
            Ok(signal) => Err(StoppedEarly(signal)),
            Err(_) => Ok(()),
        }
    }

    /// Does something that takes a while, unless one comes.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, StoppedEarly> {
        tokio::select! {
            done = work => Ok(done),
            signal = self.next() => Err(StoppedEarly(signal)),
        }
    }

    /// The second signal of the run ends bpfprof at once, leaving nothing half-written. The first asks for what is happening already;
    /// `first` hears of it.
    pub(super) async fn abort_at_second(&mut self, first: impl Fn(Signal)) -> ! {
        loop {
            let signal = self.next().await;
            if self.received > 1 {
                remove_unfinished();
                say("aborted");
                std::process::exit(ABORTED)
            }
            first(signal);
        }
    }
}

async fn hung_up(hangup: &mut Option<unix::Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether this process was started with a signal ignored (`SigIgn` of `proc_pid_status(5)`).
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 << (signal.as_raw() - 1) != 0
}

/// Its name (`signal(7)`).
fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::HUP => "SIGHUP",
        _ => "SIGTERM",
    }
}
