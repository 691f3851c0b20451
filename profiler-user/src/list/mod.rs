//! `bpfprof list`: which events open here, and why the others do not.

mod answer;
mod json;
mod pattern;
mod section;
mod text;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cli::ListOptions;
use crate::say::say;
use answer::{Host, Opens};
use pattern::Pattern;
use section::Section;

/// Lists the events that have names here and match the pattern.
///
/// # Errors
///
/// No event matches, no CPU is known to try the events on, or stdout cannot be written.
pub fn run(options: &ListOptions) -> anyhow::Result<ExitCode> {
    let host = Host::read()?;
    let pattern = options.pattern.as_deref().map(Pattern::new);
    let mut sections = section::named(&host, pattern.as_ref());
    // There are thousands of tracepoints, so they are shown to those who look for one.
    if let Some(pattern) = &pattern
        && (sections.is_empty() || pattern.asks_for_tracepoints())
    {
        match section::tracepoints(&host, pattern) {
            Ok(found) => sections.extend(found),
            Err(why) if pattern.asks_for_tracepoints() => say(format_args!("cannot list tracepoints: {why}")),
            Err(_) => {}
        }
    }
    if sections.is_empty() {
        bail!(
            "no event here matches `{}`: see `bpfprof list`",
            options.pattern.as_deref().unwrap_or_default()
        );
    }
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let written =
        if options.json { json::write(&sections, &mut stdout) } else { text::write(&sections, &mut stdout) };
    match written.and_then(|()| stdout.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot write to stdout")?,
    }
    if let Some(privilege) = missing_privilege(&sections) {
        say(format_args!("{privilege}, and see what opens then"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What stands between this user and the events, if it is that.
fn missing_privilege(sections: &[Section]) -> Option<String> {
    let mut entries = sections.iter().flat_map(|section| &section.entries);
    entries.find_map(|entry| match &entry.opens {
        Opens::WithPrivilege { why } => Some(format!("{}; {}", why.cause, why.remedy)),
        _ => None,
    })
}
