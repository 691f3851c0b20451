//! `bpfprof report`: a saved profile in every form that a recording can be shown in.

use std::process::ExitCode;

use crate::cli::{ReportOptions, Verbosity};
use crate::output::{write_neighbours, write_neighbours_json};
use crate::present::{Outputs, print, print_header};
use crate::privileges;
use crate::profile::{Inlines, NameError, Neighbours, Profile, named};
use crate::saved;
use crate::say::{StatusLine, say};
use crate::symbols::without_generics;

/// Shows a file as the options say. The exit status is a failure when no sample is left to be shown.
///
/// # Errors
///
/// When the file holds no profile, no function is meant, or an output cannot be written.
pub fn run(options: &ReportOptions) -> anyhow::Result<ExitCode> {
    privileges::drop_those_of_the_file();
    // Before the file is read: a mistake in an output should not take that long to be found.
    let outputs = Outputs::prepare(&options.output)?;
    let mut line = StatusLine::new(options.output.verbosity > Verbosity::Quiet);
    line.show(format_args!("reading {}", options.file.display()));
    let mut profile = saved::open(&options.file)?;
    drop(line);
    outputs.check(&profile.header.events().map(|(_, event)| event.name.as_str()).collect::<Vec<_>>())?;
    if options.strip_generics {
        profile = profile.renamed(without_generics);
    }
    let inlines = options.output.view.inlines;
    if inlines == Inlines::None {
        // As a recording without them.
        profile = profile.with_inlines(inlines).into_owned();
    }
    let profile = options.filter.apply(profile);
    if profile.samples.is_empty() {
        print_header(&profile.header, options.output.verbosity);
        say("no sample is left; nothing was written");
        return Ok(ExitCode::FAILURE);
    }
    match &options.callers {
        Some(name) => show_neighbours(&profile, name, options)?,
        None => outputs.write(&profile)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show_neighbours(profile: &Profile, name: &str, options: &ReportOptions) -> anyhow::Result<()> {
    let inlines = options.output.view.inlines;
    let shown = profile.with_inlines(inlines);
    let neighbours = match named(&shown, name) {
        Ok(function) => Neighbours::new(&shown, &function),
        Err(NameError::Unknown(_)) if inlines == Inlines::Own && named(profile, name).is_ok() => {
            anyhow::bail!(
                "`{name}` is inlined code of the standard library, which counts for the function that calls it; show it with --inlines all"
            )
        }
        Err(error) => return Err(error.into()),
    };
    if options.json {
        return print(|to| write_neighbours_json(&profile.header, &neighbours, to));
    }
    if options.output.verbosity > Verbosity::Quiet {
        print_header(&profile.header, options.output.verbosity);
    }
    print(|to| write_neighbours(&neighbours, options.output.rows, to))
}
