//! `bpfprof list`: which events open here, and why the others do not.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::ListOptions;
use crate::events::catalogue::{cache_events, hardware_events, software_events};
use crate::events::{EventSpec, cpus, find_precise};

/// Lists the events that perf has names for. The exit status is a failure when none is of the pattern.
///
/// # Errors
///
/// When no CPU is known to try the events on, or stdout cannot be written.
pub fn run(options: &ListOptions) -> anyhow::Result<ExitCode> {
    let cpu = cpus::online()?.first().copied().context("the kernel lists no CPU as online")?;
    let wanted = |event: &EventSpec| {
        options.pattern.as_ref().is_none_or(|pattern| event.to_string().contains(pattern.as_str()))
    };
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    for event in hardware_events().chain(software_events()).chain(cache_events()).filter(wanted) {
        let opens = find_precise(&event, event.default_rate(), cpu);
        let answer = opens.map_or_else(|refusal| refusal.cause().to_owned(), |_| event.unit().to_owned());
        writeln!(stdout, "{event}  {answer}").context("cannot write to stdout")?;
    }
    stdout.flush().context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
