//! `bpfprof help`.

/// Explain a topic, or show this help
#[derive(Debug, clap::Args)]
pub(super) struct HelpArgs {
    /// What to explain; without it: this help
    #[arg(value_name = "TOPIC")]
    pub topic: Option<Topic>,
}

/// What is longer than the help of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Topic {
    /// What each metric is, good and bad values, and what the reading means
    Metrics,
    /// What bpfprof may do, and how others than root may run it
    Permissions,
}
