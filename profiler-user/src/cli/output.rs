//! What is shown and written, and where: for everything that ends in a profile.

use std::path::{Path, PathBuf};

use super::options::UsageError;
use crate::output::{Format, TableOptions, View, Weight};
use crate::profile::metrics::Metric;
use crate::profile::{By, Inlines};

/// Raw arguments.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// Write to this file; repeatable. The extension says what: .folded, .svg (flame graph), .html (report), .json (table and header),
    /// .pb.gz (pprof: all of the profile, which `report` and other tools read), .speedscope.json, .profile.json.gz (Firefox Profiler).
    /// - is stdout (folded). [default: the table on a terminal, else folded stacks on stdout]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Vec<PathBuf>,

    /// What numbers in folded stacks and flame graphs are
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = WeightArg::Event, help_heading = "Output")]
    pub weight: WeightArg,

    /// Event of folded stacks and of the flame graph, as the header names it [default: the sampled event]
    #[arg(long, value_name = "EVENT", help_heading = "Output")]
    pub folded_event: Option<String>,

    /// Colour the flame graph by a metric, of each function with all that it calls
    #[arg(long, value_name = "METRIC", value_parser = Metric::by_name, help_heading = "Output")]
    pub color_by: Option<&'static Metric>,

    /// Metrics of the table, separated by commas; `bpfprof help metrics` explains them [default: all that the measured events are enough
    /// for]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Metric::by_name, help_heading = "Output")]
    pub metrics: Option<Vec<&'static Metric>>,

    /// What the rows of the table and of JSON stand for
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = ByArg::Function, help_heading = "Output")]
    pub by: ByArg,

    /// Rows of the table [default: 30; all with --verbose]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub inlines: InlinesArgs,

    /// Print nothing but data and errors
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,

    /// Print more: all rows, sizes and times
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

/// Which inlined functions have rows of their own.
#[derive(Debug, clap::Args)]
pub(super) struct InlinesArgs {
    /// Which inlined functions have rows of their own in tables; stacks and graphs show all
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = InlinesArg::Own, overrides_with = "no_inlines", help_heading = "Names")]
    pub inlines: InlinesArg,

    /// The same as --inlines none
    #[arg(long, overrides_with = "inlines", help_heading = "Names")]
    pub no_inlines: bool,
}

/// `--inlines`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum InlinesArg {
    /// Those outside the standard library. Its inlined code counts for the function that calls it
    Own,
    /// All
    All,
    /// None. Stacks and graphs do not show them either
    None,
}

/// `--weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum WeightArg {
    /// The event's own unit: cycles, nanoseconds of cpu-clock, faults
    Event,
    /// Samples
    Samples,
}

/// `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ByArg {
    /// Functions
    Function,
    /// Programs, libraries, kernel modules
    Object,
    /// Source lines; functions where the line is not known
    Line,
    /// Threads
    Thread,
    /// Processes
    Process,
}

/// What is shown and written, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputOptions {
    /// Outputs asked for.
    pub outputs: Vec<Output>,
    /// What numbers and rows are.
    pub view: View,
    /// Most rows of the table.
    pub rows: usize,
    /// How much to say.
    pub verbosity: Verbosity,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where.
    pub place: Place,
    /// What.
    pub format: Format,
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To stdout.
    Stdout,
    /// To a file.
    File(PathBuf),
}

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Header, table, progress.
    Normal,
    /// More.
    Verbose,
}

impl Verbosity {
    /// By the options for less and for more.
    pub(super) fn of(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Verbose,
            _ => Self::Normal,
        }
    }
}

impl OutputArgs {
    /// Checks raw arguments.
    pub(super) fn check(self) -> Result<OutputOptions, UsageError> {
        let verbosity = Verbosity::of(self.quiet, self.verbose);
        let by_verbosity =
            if verbosity == Verbosity::Verbose { usize::MAX } else { TableOptions::default().rows };
        Ok(OutputOptions {
            outputs: outputs(&self.output)?,
            view: View {
                weight: match self.weight {
                    WeightArg::Event => Weight::Event,
                    WeightArg::Samples => Weight::Samples,
                },
                by: match self.by {
                    ByArg::Function => By::Function,
                    ByArg::Object => By::Object,
                    ByArg::Line => By::Line,
                    ByArg::Thread => By::Thread,
                    ByArg::Process => By::Process,
                },
                event: self.folded_event,
                inlines: self.inlines.check(),
                metrics: self.metrics,
                color_by: self.color_by,
            },
            rows: self.limit.unwrap_or(by_verbosity),
            verbosity,
        })
    }
}

impl InlinesArgs {
    /// Checks raw arguments.
    pub(super) fn check(&self) -> Inlines {
        match self.inlines {
            _ if self.no_inlines => Inlines::None,
            InlinesArg::Own => Inlines::Own,
            InlinesArg::All => Inlines::All,
            InlinesArg::None => Inlines::None,
        }
    }
}

fn outputs(paths: &[PathBuf]) -> Result<Vec<Output>, UsageError> {
    let mut outputs: Vec<Output> = Vec::new();
    for path in paths {
        let output = if path == Path::new("-") {
            Output { place: Place::Stdout, format: Format::Folded }
        } else {
            Output { place: Place::File(path.clone()), format: Format::from_path(path)? }
        };
        if outputs.contains(&output) {
            return Err(UsageError::SameOutput(path.display().to_string()));
        }
        outputs.push(output);
    }
    Ok(outputs)
}
