//! `bpfprof diff`: two saved profiles side by side.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{DiffFormat, DiffOptions, Verbosity};
use crate::output::file::OutputFile;
use crate::output::{counted, write_diff_json, write_diff_svg, write_diff_table};
use crate::present::{fill, print, print_headers, terminal_width};
use crate::privileges;
use crate::profile::Profile;
use crate::profile::diff::{Diff, comparable};
use crate::saved;
use crate::say::say;

/// Exit status when a function became slower than is allowed.
const REGRESSION: u8 = 3;

/// Compares two files as the options say.
///
/// # Errors
///
/// When a file holds no profile, they cannot be compared, or an output cannot be written.
pub fn run(options: &DiffOptions) -> anyhow::Result<ExitCode> {
    privileges::drop_those_of_the_file();
    // Before the files are read: a mistake in an output should not take that long to be found.
    let mut files = Vec::new();
    for (path, format) in &options.outputs {
        let file = OutputFile::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        files.push((file, *format));
    }
    let open = |path: &Path| -> anyhow::Result<Profile> {
        let profile = options.filter.apply(saved::open(path)?);
        anyhow::ensure!(!profile.samples.is_empty(), "no sample of {} is left", path.display());
        Ok(profile.renamed(comparable))
    };
    let (before, after) = (open(&options.before)?, open(&options.after)?);
    let diff = {
        let [before, after] = [&before, &after].map(|profile| profile.with_inlines(options.inlines));
        Diff::new(&before, &after, options.scale, options.basis)?
    };
    let mut written = Vec::new();
    for (file, format) in files {
        let what = format.describe();
        written.push(match format {
            DiffFormat::Json => {
                fill(file, what, |to| write_diff_json(&diff, &before.header, &after.header, to))?
            }
            DiffFormat::Svg => fill(file, what, |to| write_diff_svg(&before, &after, options.scale, to))?,
        });
    }
    if options.verbosity > Verbosity::Quiet {
        print_headers(&before.header, &after.header, options.verbosity);
    }
    print(|to| write_diff_table(&diff, options.rows, terminal_width(), to))?;
    if options.verbosity > Verbosity::Quiet {
        written.iter().for_each(say);
    }
    Ok(judge(&diff, options.allowed_growth))
}

/// Says whether a function became slower than is allowed.
fn judge(diff: &Diff, allowed: Option<f64>) -> ExitCode {
    let Some(allowed) = allowed else { return ExitCode::SUCCESS };
    if let Some(too_short) = &diff.too_short {
        say(format_args!("--fail-on-regression cannot tell: {too_short}"));
        return ExitCode::FAILURE;
    }
    if diff.untold > 0 {
        let functions = counted(diff.untold as u64, "function");
        say(format_args!(
            "--fail-on-regression leaves out {functions} of which the runs are too short to tell"
        ));
    }
    match diff.worst().filter(|(_, growth)| *growth > allowed) {
        Some((row, growth)) => {
            let by = if growth.is_finite() {
                format!("became {:.1} % slower, and {:.1} % is allowed", growth * 100.0, allowed * 100.0)
            } else {
                "is new".into()
            };
            say(format_args!("regression: {} {by}", row.name.escape_debug()));
            ExitCode::from(REGRESSION)
        }
        None => ExitCode::SUCCESS,
    }
}
