//! The command line: raw arguments, then options that hold together.

mod args;
mod command_line;
mod diff;
mod help;
mod list;
mod options;
mod output;
mod report;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::say::say;
use command_line::{CommandLine, SubcommandArgs};
use help::HelpArgs;

pub use diff::{DiffFormat, DiffOptions};
pub use help::Topic;
pub use list::ListOptions;
pub use options::{Options, Target, UsageError};
pub use output::{Output, OutputOptions, Place, Verbosity};
pub use report::ReportOptions;

/// What the user wants done.
#[derive(Clone, Debug)]
pub enum Command {
    /// Sample something: the command without a name.
    Record(Box<Options>),
    /// Show events.
    List(ListOptions),
    /// Show a saved profile.
    Report(Box<ReportOptions>),
    /// Compare two.
    Diff(Box<DiffOptions>),
    /// Explain something.
    Help(Topic),
}

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
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, Usage> {
    let line = CommandLine::try_parse_from(args).map_err(Usage::Clap)?;
    match line.subcommand {
        None => {
            let options = Options::check(line.record).map_err(Usage::Conflict)?;
            Ok(Command::Record(Box::new(options)))
        }
        Some(SubcommandArgs::List(args)) => Ok(Command::List(args.into())),
        Some(SubcommandArgs::Report(args)) => {
            let options = args.check().map_err(Usage::Conflict)?;
            Ok(Command::Report(Box::new(options)))
        }
        Some(SubcommandArgs::Diff(args)) => {
            let options = args.check().map_err(Usage::Conflict)?;
            Ok(Command::Diff(Box::new(options)))
        }
        Some(SubcommandArgs::Help(HelpArgs { topic: Some(topic) })) => Ok(Command::Help(topic)),
        Some(SubcommandArgs::Help(HelpArgs { topic: None })) => {
            parse(["bpfprof", "--help"].map(OsString::from))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Rate;
    use crate::types::Tgid;

    fn parsed(line: &str) -> Result<Options, String> {
        match command(line)? {
            Command::Record(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    fn command(line: &str) -> Result<Command, String> {
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
        assert_eq!(parsed("-a -e cpu/event=1,period=9/").unwrap().rate, None);
        for wrong in [
            "-a -e cpu/event=1,period=9/ -F 9",
            "-a -F 0",
            "-a -c 0",
            "-a -F 9 -c 9",
            "-a --user-only --kernel-only",
            "-a -d 0s",
            "-a -d soon",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outputs_are_told_by_their_names() {
        let options = parsed("-a -o x.svg -o - -o y.json").unwrap();
        let places: Vec<Place> = options.output.outputs.into_iter().map(|output| output.place).collect();
        assert_eq!(places, [Place::File("x.svg".into()), Place::Stdout, Place::File("y.json".into())]);
        assert!(parsed("-a -o x.pdf").unwrap_err().contains(".folded"));
        assert!(parsed("-a -o x.svg -o x.svg").unwrap_err().contains("twice"));
    }

    #[test]
    fn a_subcommand_needs_no_target_and_takes_no_options_of_a_recording() {
        let listed = |line: &str| match command(line).unwrap() {
            Command::List(options) => (options.pattern, options.json),
            other => panic!("{line} is {other:?}"),
        };
        assert_eq!(listed("list"), (None, false));
        assert_eq!(listed("list --json L1-*"), (Some("L1-*".into()), true));
        for wrong in ["-a list", "list -a", "list x y", "lists"] {
            assert!(command(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parsed("-- list").unwrap().target, Target::Command(vec!["list".into()]));
    }

    #[test]
    fn what_a_report_shows_is_checked() {
        for right in
            ["report x --by line --limit 5", "report - --focus ^a|b$ -o x.svg", "report x --callers f --json"]
        {
            assert!(matches!(command(right), Ok(Command::Report(_))), "{right}");
        }
        for (wrong, word) in [
            ("report", "FILE"),
            ("report x --focus (", "--focus"),
            ("report x --json", "--callers"),
            ("report x --callers f -o x.svg", "cannot be used"),
            ("report x -o x.pdf", ".folded"),
        ] {
            assert!(command(wrong).unwrap_err().contains(word), "{wrong}");
        }
    }

    #[test]
    fn help_is_of_a_topic_or_of_all() {
        assert!(matches!(command("help metrics"), Ok(Command::Help(Topic::Metrics))));
        assert!(command("help").unwrap_err().contains("Usage: bpfprof"));
        assert!(command("help everything").unwrap_err().contains("metrics"));
    }

    #[test]
    fn what_a_comparison_allows_is_a_percentage() {
        let allowed = |line: &str| match command(line)? {
            Command::Diff(options) => Ok(options.allowed_growth),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(allowed("diff a b -o x.svg -o y.json"), Ok(None));
        assert_eq!(allowed("diff a b --fail-on-regression 5%"), Ok(Some(0.05)));
        assert_eq!(allowed("diff a b --fail-on-regression 12.5"), Ok(Some(0.125)));
        for wrong in [
            "diff a",
            "diff a b -o x.folded",
            "diff a b --fail-on-regression x",
            "diff a b --fail-on-regression -1",
        ] {
            assert!(allowed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_help_is_well_formed_and_shows_every_subcommand() {
        use clap::CommandFactory as _;
        let mut line = CommandLine::command();
        line.clone().debug_assert();
        let help = line.render_long_help().to_string();
        for subcommand in line.get_subcommands() {
            let usage = format!("bpfprof {} ", subcommand.get_name());
            assert!(help.contains(&usage), "{usage} is not in the usage:\n{help}");
        }
        assert!(help.starts_with("Which functions burn the CPU, and why"), "{help}");
    }
}
