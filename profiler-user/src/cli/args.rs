//! Raw arguments of a recording, as clap reads them. The texts here are the help.

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;

use super::output::OutputArgs;
use super::time::parse_duration;
use crate::events::{EventList, EventSpec};

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "tid", "all", "cgroup", "command"])))]
pub(super) struct Args {
    /// Sample these processes, with all their threads and children
    #[arg(
        short,
        long,
        value_name = "PID[,PID…]",
        value_delimiter = ',',
        help_heading = "Target (exactly one)"
    )]
    pub pid: Vec<NonZeroU32>,

    /// Sample these threads, and the threads and processes they start
    #[arg(
        short,
        long,
        value_name = "TID[,TID…]",
        value_delimiter = ',',
        help_heading = "Target (exactly one)"
    )]
    pub tid: Vec<NonZeroU32>,

    /// Sample the whole machine
    #[arg(short, long, help_heading = "Target (exactly one)")]
    pub all: bool,

    /// Sample a cgroup (version 2) and those below it, by its folder or its path in the hierarchy
    #[arg(long, value_name = "PATH", help_heading = "Target (exactly one)")]
    pub cgroup: Option<PathBuf>,

    /// Start a command and sample it until it ends. bpfprof exits with its status. While folded stacks go to stdout, its own output goes
    /// to stderr
    #[arg(last = true, value_name = "COMMAND", help_heading = "Target (exactly one)")]
    pub command: Vec<OsString>,

    /// Sample on these CPUs only, as in 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Narrowing")]
    pub cpu: Option<String>,

    /// Sample only threads with this command name (its first 15 bytes count)
    #[arg(long, value_name = "NAME", help_heading = "Narrowing")]
    pub comm: Option<String>,

    /// Leave kernel frames out; a sample in the kernel counts for the user function that called it
    #[arg(long, conflicts_with = "kernel_only", help_heading = "Narrowing")]
    pub user_only: bool,

    /// Leave out user frames, and samples in user mode altogether
    #[arg(long, help_heading = "Narrowing")]
    pub kernel_only: bool,

    /// Do not follow children (and, with --tid, new threads); by default they are followed from their first instruction, and children
    /// that exist already count too
    #[arg(long, help_heading = "Narrowing")]
    pub no_children: bool,

    /// Count idle CPUs too, which by default are left out
    #[arg(long, help_heading = "Narrowing")]
    pub idle: bool,

    /// Stop after this time: 10s, 2m, 500ms. By default at Ctrl-C, or when the target ends
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Sampling")]
    pub duration: Option<Duration>,

    /// Samples a second on each CPU [default: 997; every occurrence of what the kernel counts itself, and of breakpoints]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "period", help_heading = "Sampling")]
    pub freq: Option<NonZeroU32>,

    /// One sample for every N events (N nanoseconds for the clocks)
    #[arg(short = 'c', long, value_name = "N", help_heading = "Sampling")]
    pub period: Option<NonZeroU64>,

    /// What to sample, in perf's spelling: cycles, instructions, cache-misses, LLC-load-misses, r01c4, cpu-clock, page-faults,
    /// mem:0x401130:x, cpu/event=0xd1,umask=0x20/ …, with modifiers u k p pp ppp; `bpfprof list` shows what opens here. [default: cycles;
    /// where there is none cpu-clock, and every output says so]
    #[arg(short, long, value_name = "EVENT", help_heading = "Sampling")]
    pub event: Option<EventSpec>,

    /// What to measure per function besides, in perf's spelling and separated by commas: instructions, LLC-load-misses, page-faults …; or
    /// a set: default, memory, branch, none. [default: the set default, with cycles; events of a set that are not here are left out,
    /// which is said]
    #[arg(long, value_name = "LIST", help_heading = "Sampling")]
    pub counters: Option<EventList>,

    /// How what counters count reaches functions
    #[arg(long, value_name = "HOW", value_enum, default_value_t = AttributionArg::Overflow, help_heading = "Sampling")]
    pub attribution: AttributionArg,

    /// How user stacks are walked
    #[arg(long, value_name = "HOW", value_enum, default_value_t = UnwindArg::Auto, help_heading = "Sampling")]
    pub unwind: UnwindArg,

    /// Memory that unwind tables may take in the kernel, in MiB
    #[arg(long, value_name = "MIB", default_value = "256", help_heading = "Sampling")]
    pub unwind_memory: NonZeroU32,

    /// Leave the arguments of generics and templates out of names: Vec<T>::push becomes Vec::push
    #[arg(long, help_heading = "Names")]
    pub strip_generics: bool,

    /// Time for reading names; objects that are left then are named by their symbol tables alone
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s", help_heading = "Names")]
    pub symbol_time: Duration,

    /// Look for separate debug files here too, as below /usr/lib/debug; repeatable
    #[arg(long, value_name = "FOLDER", help_heading = "Names")]
    pub debug_dir: Vec<PathBuf>,

    /// Ask no debuginfod server; by default those in DEBUGINFOD_URLS are asked for debug files that are not here
    #[arg(long, help_heading = "Names")]
    pub no_debuginfod: bool,

    /// Let the BPF programs that follow tasks say what they do, for debugging bpfprof itself
    #[arg(long, hide = true)]
    pub bpf_log: bool,

    /// Treat this many sizes of the sample program as if the kernel refused them, for testing bpfprof itself
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub refuse_programs: usize,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// `--unwind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum UnwindArg {
    /// By .eh_frame where there is one, by frame pointers where there is none
    Auto,
    /// By .eh_frame only
    Dwarf,
    /// By frame pointers only
    Fp,
    /// Not at all: kernel stacks only
    None,
}

/// `--attribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AttributionArg {
    /// Each counter is sampled by its own overflow: right for functions of any length
    Overflow,
    /// Counters are read at each sample, and the increase since the last reading goes to the function that is sampled: cheaper, but a
    /// function that runs for less than the sampling interval takes the ratios of its neighbours
    Delta,
}
