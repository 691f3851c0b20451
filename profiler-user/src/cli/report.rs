//! `bpfprof report`.

use std::path::PathBuf;

use regex::Regex;

use super::options::UsageError;
use super::output::{OutputArgs, OutputOptions};
use crate::profile::Filter;

/// Show a saved profile, or what other tools saved, in every form that a recording can be shown in
///
/// It reads what `-o FILE.pb.gz` wrote, pprof files of other programs, folded stacks and the text of `perf script`, packed by gzip or zstd or
/// not. No root is needed. Without -o the table goes to a terminal, and folded stacks to anything else.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// The profile; - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Show one function with its callers and what it calls, instead of the whole. Its name, or the end of its path
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["output", "by", "weight"], help_heading = "Output")]
    pub callers: Option<String>,

    /// Print JSON
    #[arg(long, requires = "callers", help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub filter: FilterArgs,

    /// Leave the arguments of generics and templates out of names: Vec<T>::push becomes Vec::push
    #[arg(long, help_heading = "Names")]
    pub strip_generics: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which samples count.
#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Only samples with a function in their stack that matches
    #[arg(long, value_name = "REGEX", help_heading = "Narrowing")]
    pub focus: Option<String>,

    /// Only samples without a function in their stack that matches
    #[arg(long, value_name = "REGEX", help_heading = "Narrowing")]
    pub ignore: Option<String>,

    /// Only threads with this command name
    #[arg(long, value_name = "NAME", help_heading = "Narrowing")]
    pub comm: Option<String>,

    /// Only these processes
    #[arg(long, value_name = "PID[,PID…]", value_delimiter = ',', help_heading = "Narrowing")]
    pub pid: Vec<u32>,
}

/// What to show.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The profile; `-` is stdin.
    pub file: PathBuf,
    /// The function to show with its neighbours.
    pub callers: Option<String>,
    /// Whether to show it as JSON.
    pub json: bool,
    /// Which samples count.
    pub filter: Filter,
    /// Whether to leave the arguments of generics out of names.
    pub strip_generics: bool,
    /// What is shown and written.
    pub output: OutputOptions,
}

impl ReportArgs {
    /// Checks raw arguments.
    pub(super) fn check(self) -> Result<ReportOptions, UsageError> {
        Ok(ReportOptions {
            file: self.file,
            callers: self.callers,
            json: self.json,
            filter: self.filter.check()?,
            strip_generics: self.strip_generics,
            output: self.output.check()?,
        })
    }
}

impl FilterArgs {
    /// Checks raw arguments.
    pub(super) fn check(self) -> Result<Filter, UsageError> {
        let pattern = |option, text: Option<String>| {
            text.map(|text| Regex::new(&text).map_err(|error| UsageError::Pattern { option, error }))
                .transpose()
        };
        Ok(Filter {
            focus: pattern("focus", self.focus)?,
            ignore: pattern("ignore", self.ignore)?,
            comm: self.comm,
            processes: self.pid,
        })
    }
}
