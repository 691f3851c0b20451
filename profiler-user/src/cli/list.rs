//! `bpfprof list`.

/// Show which events open here, and why the others do not
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
