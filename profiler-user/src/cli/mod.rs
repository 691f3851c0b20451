//! The command line: raw arguments, then options that hold together.

mod args;
mod options;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::say::say;

pub use options::{Options, Output, Place, Target, UsageError, Verbosity};

/// Why there is nothing to run: help was asked for, or the arguments are wrong.
#[derive(Debug)]
pub enum Usage {
    /// clap's text.
    Clap(clap::Error),
    /// Arguments that are each right but do not fit together.
    Conflict(UsageError),
}

impl Usage {
    /// Prints it where it belongs and gives the exit status: 0 for help, 2 for a mistake.
    #[must_use]
    pub fn print(&self) -> ExitCode {
        match self {
            Self::Clap(error) => {
                // Nothing is left to be done when even this cannot be printed.
                let _ = error.print();
                if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
            }
            Self::Conflict(error) => {
                say(format_args!("{error}\n\nFor more information, try 'bpfprof --help'."));
                ExitCode::from(2)
            }
        }
    }
}

/// Parses a command line.
///
/// # Errors
///
/// When help or the version was asked for, or on wrong usage.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Options, Usage> {
    let args = args::Args::try_parse_from(args).map_err(Usage::Clap)?;
    Options::check(args).map_err(Usage::Conflict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Rate;
    use crate::types::Tgid;

    fn parsed(line: &str) -> Result<Options, String> {
        let args = line.split_whitespace().map(OsString::from);
        parse(std::iter::once("bpfprof".into()).chain(args)).map_err(|usage| match usage {
            Usage::Clap(error) => error.to_string(),
            Usage::Conflict(error) => error.to_string(),
        })
    }

    #[test]
    fn exactly_one_target() {
        assert_eq!(parsed("-p 1,2").unwrap().target, Target::Processes(vec![Tgid(1), Tgid(2)]));
        assert_eq!(
            parsed("-- sh -c x").unwrap().target,
            Target::Command(vec!["sh".into(), "-c".into(), "x".into()])
        );
        for wrong in ["", "-a -p 1", "-a -- ls", "-p 1 -t 2", "-p 0", "-p x"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_exclude_each_other() {
        assert_eq!(parsed("-a -F 99").unwrap().rate, Some(Rate::Frequency(99.try_into().unwrap())));
        assert_eq!(parsed("-a -c 1000").unwrap().rate, Some(Rate::Period(1000.try_into().unwrap())));
        for wrong in
            ["-a -F 0", "-a -c 0", "-a -F 9 -c 9", "-a --user-only --kernel-only", "-a -d 0s", "-a -d soon"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outputs_are_told_by_their_names() {
        let options = parsed("-a -o x.svg -o - -o y.json").unwrap();
        let places: Vec<Place> = options.outputs.into_iter().map(|output| output.place).collect();
        assert_eq!(places, [Place::File("x.svg".into()), Place::Stdout, Place::File("y.json".into())]);
        assert!(parsed("-a -o x.pdf").unwrap_err().contains(".folded"));
        assert!(parsed("-a -o x.svg -o x.svg").unwrap_err().contains("twice"));
    }

    #[test]
    fn the_help_is_well_formed() {
        use clap::CommandFactory as _;
        args::Args::command().debug_assert();
    }
}
