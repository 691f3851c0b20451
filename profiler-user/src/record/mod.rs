//! Recording: the default command. Arms, samples until something ends it, names what was sampled, and writes the outputs.

mod cgroup;
mod command;
mod conditions;
mod draws;
mod eager;
mod event;
mod fresh;
mod looks;
mod progress;
mod readiness;
mod report;
mod session;
mod signals;
mod target;
mod unwind_tables;

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::cli::{Options, Verbosity};
use crate::kernel::{DRAINS_PER_SECOND, wait_for_running_programs};
use crate::precedence::Precedence;
use crate::present::Outputs;
use crate::privileges;
use crate::say::{StatusLine, say};
use command::{CannotRun, Command, Running};
use draws::Draws;
use looks::Looks;
use readiness::{readable_from, watch};
use session::Session;
use signals::Signals;
use target::Watch;

/// Side-band records are looked at no more often than this for their own sake, however fast they come.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Records as the options say. The exit status is the one of the command that was started, if one was.
///
/// # Errors
///
/// When nothing could be recorded, or an output could not be written.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    privileges::check()?;
    privileges::raise_file_limit();
    // Before anything is armed: a mistake in an output must not cost a recording.
    let outputs = Outputs::prepare(&options.output)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime
        .block_on(async {
            // First of all: a signal while everything is being armed must find an answer.
            let mut signals = Signals::listen()?;
            let events = event::choose(options)?;
            let names = events.names();
            outputs.check(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
            let command = match &options.target {
                crate::cli::Target::Command(words) => {
                    Some(Command::prepare(words, outputs.folded_on_stdout())?)
                }
                _ => None,
            };
            let target = target::resolve(options, command.as_ref())?;
            let session = Session::arm(options, events, &target)?;
            let running = command.map(Command::start).transpose()?;
            // Arming blocked. Whoever stopped it must not read that the target did not run.
            signals.check().await?;
            record(options, session, target.watch, outputs, running, &mut signals).await
        })
        .or_else(|error| match error.downcast_ref::<CannotRun>() {
            Some(cannot_run) => {
                say(cannot_run);
                Ok(ExitCode::from(cannot_run.exit_status()))
            }
            None => Err(error),
        })
}

/// Why sampling ended.
enum Stop {
    Duration,
    TargetEnded,
    Signal(rustix::process::Signal),
}

async fn record(
    options: &Options,
    mut session: Session,
    targets: Watch,
    outputs: Outputs,
    mut running: Option<Running>,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    signals.unless_stopped(session.settle()).await??;
    session.start()?;
    privileges::keep_for_sampling();
    if let Some(running) = &mut running {
        running.release();
        running.executed()?;
    }
    let stop = sample(options, &mut session, targets, running.as_ref(), signals).await?;
    if let (Stop::Signal(signal), Some(running)) = (&stop, &running) {
        running.passer().pass_on(*signal);
    }
    if options.output.verbosity == Verbosity::Verbose {
        say(session.unwinding_figures());
    }
    let recorded = session.finish()?;
    let verbosity = options.output.verbosity;
    let verbose = verbosity == Verbosity::Verbose;
    let symbols = options.symbols.clone();
    let written = tokio::task::spawn_blocking(move || -> anyhow::Result<bool> {
        let begun = Instant::now();
        let mut line = StatusLine::new(verbosity > Verbosity::Quiet);
        let profile = recorded.symbolize(&symbols, &mut |done, all| {
            line.show(format_args!("names: {done} of {all} objects"));
        });
        drop(line);
        let symbolized = begun.elapsed();
        let written = report::write(outputs, &profile)?;
        if verbose {
            say(format_args!("names took {symbolized:.1?}, outputs {:.1?}", begun.elapsed() - symbolized));
        }
        Ok(written)
    });
    let passer = running.as_ref().map(Running::passer);
    let pass_on = |signal| passer.iter().for_each(|passer| passer.pass_on(signal));
    let written = tokio::select! {
        written = written => written.context("writing the outputs failed")?,
        never = signals.abort_at_second(pass_on) => never,
    };
    let Some(running) = running else {
        return Ok(if written? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    if let Err(error) = &written {
        say(format_args!("{error:#}"));
    }
    if !matches!(stop, Stop::TargetEnded)
        && !running.has_ended()
        && options.output.verbosity > Verbosity::Quiet
    {
        say("sampling is done; waiting for the command to end");
    }
    let passer = running.passer();
    let ended = running.wait();
    let status = tokio::select! {
        status = ended => status?,
        never = signals.abort_at_second(|signal| passer.pass_on(signal)) => never,
    };
    // A command that succeeded must not hide that its profile is missing.
    Ok(if status == 0 && written.is_err() { ExitCode::FAILURE } else { ExitCode::from(status) })
}

/// Drains until something ends the recording.
async fn sample(
    options: &Options,
    session: &mut Session,
    mut targets: Watch,
    running: Option<&Running>,
    signals: &mut Signals,
) -> anyhow::Result<Stop> {
    let begun = tokio::time::Instant::now();
    // Years from now is as good as never.
    let deadline = begun + options.duration.unwrap_or(Duration::from_secs(1 << 30));
    let mut drain = interval(Duration::from_secs(1) / DRAINS_PER_SECOND);
    drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let readiness =
        session.sideband_fd().as_fd().try_clone_to_owned().context("cannot watch the side-band records")?;
    let requests = session.requests_fd().and_then(watch).context("cannot watch for requests of programs")?;
    let (mut looks, mut may_look) = (Looks::default(), begun);
    // The start has drawn the first.
    let mut draws = Draws::after_first(session.lowest_drawn_frequency());
    let _precedence = Precedence::take();
    let mut line = StatusLine::new(options.output.verbosity > Verbosity::Quiet);
    // Waits for programs, while others still ask for files.
    let mut ended_slice: Option<JoinHandle<()>> = None;
    let stop = loop {
        tokio::select! {
            () = sleep_until(deadline) => break Stop::Duration,
            signal = signals.next() => break Stop::Signal(signal),
            () = target_ended(&mut targets, running) => break Stop::TargetEnded,
            placed = session.place_table() => placed?,
            () = draws.due() => {
                session.draw_periods()?;
                draws.count();
            }
            _ = drain.tick(), if ended_slice.is_none() => {
                session.end_slice()?;
                ended_slice = Some(tokio::task::spawn_blocking(wait_for_running_programs));
            }
            () = ended(&mut ended_slice) => {
                if session.take_slice()? {
                    looks.begin();
                }
                progress::show(&mut line, session.status());
                if !targets.threads_live() {
                    break Stop::TargetEnded;
                }
            }
            asked = requests.readable() => {
                if session.open_new_objects()? {
                    looks.begin();
                }
                asked.context("cannot watch for requests of programs")?.clear_ready();
            }
            () = looks.due() => {
                looks.count();
                if session.open_new_objects()? {
                    looks.begin();
                }
            }
            ready = readable_from(may_look, readiness.as_fd()) => {
                ready.context("cannot watch the side-band records")?;
                if session.open_new_objects()? {
                    looks.begin();
                }
                may_look = tokio::time::Instant::now() + LOOK_PAUSE;
            }
        }
    };
    if ended_slice.is_some() {
        ended(&mut ended_slice).await;
        session.take_slice()?;
    }
    Ok(stop)
}

/// Returns when the programs have ended that may still write a slice that was ended; never when none was.
async fn ended(slice: &mut Option<JoinHandle<()>>) {
    match slice {
        // A thread that panicked waits no more either.
        Some(waiting) => drop(waiting.await),
        None => std::future::pending().await,
    }
    *slice = None;
}

async fn target_ended(targets: &mut Watch, running: Option<&Running>) {
    match running {
        Some(running) => running.ended().await,
        None => targets.processes_ended().await,
    }
}
