//! The command `bpfprof`.

use std::process::ExitCode;

use bpfprof::{cli, record, say::say};

fn main() -> ExitCode {
    let options = match cli::parse(std::env::args_os()) {
        Ok(options) => options,
        Err(usage) => return usage.print(),
    };
    record::run(&options).unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        ExitCode::FAILURE
    })
}
