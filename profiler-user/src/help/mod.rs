//! `bpfprof help TOPIC`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::Topic;
use crate::profile::metrics;

/// Prints what there is to say on a topic.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn run(topic: Topic) -> anyhow::Result<ExitCode> {
    let text = match topic {
        Topic::Metrics => metrics::explain(),
        Topic::Permissions => include_str!("permissions.txt").into(),
    };
    io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
