//! `bpfprof diff`.

use std::path::{Path, PathBuf};

use super::options::UsageError;
use super::output::{InlinesArgs, Verbosity};
use super::report::FilterArgs;
use crate::output::TableOptions;
use crate::profile::diff::{Basis, Scale};
use crate::profile::{Filter, Inlines};

/// Show what changed from one saved profile to another, and mark what is more than chance
///
/// The table goes to stdout: what each function took itself before and after, with the interval in which the difference would lie in other
/// runs of both programs. A function is marked (▲ slower, ▼ faster) only if runs of one and the same program would hardly ever differ as much in
/// any of the functions compared. Functions are matched by name, whatever their hashes, lines and objects.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The profile before, in any form that `report` reads
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,

    /// The profile after
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,

    /// Compare what functions cost over the whole run instead of shares: for runs that did the same work
    #[arg(long)]
    pub absolute: bool,

    /// Compare what functions take with all they call instead of what they take themselves: a caller that calls a function more often is marked
    #[arg(long)]
    pub total: bool,

    /// Exit with status 3 if a marked function became slower by more than this: 5%. A new function that is marked counts too. Runs that
    /// are too short to tell give status 1
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub fail_on_regression: Option<f64>,

    /// Write to this file; repeatable: .svg (flame graph, red where it grew and blue where it shrank) or .json
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Vec<PathBuf>,

    /// Rows of the table [default: 30]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub inlines: InlinesArgs,

    /// Print nothing but data and errors
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,

    /// Print all of both headers
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,

    #[command(flatten)]
    pub filter: FilterArgs,
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The profile before.
    pub before: PathBuf,
    /// The profile after.
    pub after: PathBuf,
    /// What is compared.
    pub scale: Scale,
    /// Which costs are compared.
    pub basis: Basis,
    /// Part of its cost that a function may grow by without the exit status saying so.
    pub allowed_growth: Option<f64>,
    /// Files asked for.
    pub outputs: Vec<(PathBuf, DiffFormat)>,
    /// Most rows of the table.
    pub rows: usize,
    /// Which samples count.
    pub filter: Filter,
    /// Which inlined functions are compared.
    pub inlines: Inlines,
    /// How much to say.
    pub verbosity: Verbosity,
}

/// A format of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    /// All functions.
    Json,
    /// A differential flame graph.
    Svg,
}

impl DiffFormat {
    /// What the file holds, in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Json => "differences and headers",
            Self::Svg => "differential flame graph",
        }
    }

    fn from_path(path: &Path) -> Result<Self, UsageError> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Ok(Self::Json),
            Some("svg") => Ok(Self::Svg),
            _ => Err(UsageError::DiffFormat(path.display().to_string())),
        }
    }
}

impl DiffArgs {
    /// Checks raw arguments.
    pub(super) fn check(self) -> Result<DiffOptions, UsageError> {
        let outputs = self.output.into_iter().map(|path| {
            let format = DiffFormat::from_path(&path)?;
            Ok((path, format))
        });
        Ok(DiffOptions {
            before: self.before,
            after: self.after,
            scale: if self.absolute { Scale::Absolute } else { Scale::Normalised },
            basis: if self.total { Basis::Total } else { Basis::Own },
            allowed_growth: self.fail_on_regression,
            outputs: outputs.collect::<Result<_, UsageError>>()?,
            rows: self.limit.unwrap_or(TableOptions::default().rows),
            filter: self.filter.check()?,
            inlines: self.inlines.check(),
            verbosity: Verbosity::of(self.quiet, self.verbose),
        })
    }
}

/// `5%` or `5` is 0.05.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err("a percentage is meant, as in 5%".into()),
    }
}
