//! The whole command line: a recording, or a subcommand.

use clap::{Parser, Subcommand};

use super::args::Args;
use super::diff::DiffArgs;
use super::help::HelpArgs;
use super::list::ListArgs;
use super::report::ReportArgs;

/// Which functions burn the CPU, and why: a sampling profiler for Linux.
///
/// bpfprof samples processes by a perf event, walks and counts their stacks inside the kernel, and prints a table of functions, folded
/// stacks or a flame graph. Every output says which event was really used, what was lost, and how far its stacks and names reach.
#[derive(Debug, Parser)]
#[command(
    name = "bpfprof",
    version,
    override_usage = USAGE,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_help_heading = "Commands that record nothing",
    disable_help_subcommand = true,
)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub subcommand: Option<SubcommandArgs>,

    #[command(flatten)]
    pub record: Args,
}

/// One variant a subcommand; the first line of each is its line in the help.
#[derive(Debug, Subcommand)]
pub(super) enum SubcommandArgs {
    List(ListArgs),
    Report(Box<ReportArgs>),
    Diff(DiffArgs),
    Help(HelpArgs),
}

const USAGE: &str = "\
bpfprof [OPTIONS] <--pid PID | --tid TID | --all | --cgroup PATH | -- COMMAND [ARG…]>
       bpfprof list [OPTIONS] [PATTERN]
       bpfprof report [OPTIONS] FILE
       bpfprof diff [OPTIONS] BEFORE AFTER
       bpfprof help [TOPIC]";

const EXAMPLES: &str = "\
Examples:
  sudo bpfprof --pid 4242 --duration 10s | inferno-flamegraph > flame.svg
  sudo bpfprof -o flame.svg -- ./target/release/app
  sudo bpfprof --all --duration 30s -o host.pb.gz -o host.svg -o host.json
  bpfprof report host.pb.gz --by object
  bpfprof diff before.pb.gz after.pb.gz --fail-on-regression 5%

Exit status: 0 done; 1 bpfprof could not do it; 2 wrong usage; for a command that ran, its own status (128 + signal when it was killed).
One Ctrl-C stops sampling and writes every output; a second one aborts.";
