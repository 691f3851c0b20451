//! `bpfprof list`.

/// Show which events open here, and why the others do not
///
/// Each line has an event, whether it opens, the unit of its counts, and what is to be said. `yes`: it can be sampled. `count`: it can be
/// counted, and not sampled. `root`: it is there, but needs a privilege. `no`: it cannot be opened. Tracepoints are shown if PATTERN has a
/// `:`, as in 'sched:*', or if nothing else matches.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Show the events whose names contain this, or match it where it has * or ?; case does not count
    #[arg(value_name = "PATTERN")]
    pub pattern: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Part of the names, or a glob; `None` for every event.
    pub pattern: Option<String>,
    /// Whether to print JSON instead of lines.
    pub json: bool,
}

impl From<ListArgs> for ListOptions {
    fn from(args: ListArgs) -> Self {
        Self { pattern: args.pattern, json: args.json }
    }
}
