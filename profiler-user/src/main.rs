//! The command `bpfprof`.

use std::process::ExitCode;

use bpfprof::cli::{self, Command};
use bpfprof::{diff, help, list, record, report, say::say};

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(usage) => return usage.print(),
    };
    let done = match &command {
        Command::Record(options) => record::run(options),
        Command::List(options) => list::run(options),
        Command::Report(options) => report::run(options),
        Command::Diff(options) => diff::run(options),
        Command::Help(topic) => help::run(*topic),
    };
    done.unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        ExitCode::FAILURE
    })
}
