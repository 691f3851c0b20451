//! Checked options: what can be said to be wrong without looking at the system has been.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::args::{Args, AttributionArg, UnwindArg};
use super::output::OutputOptions;
use crate::events::{CpuId, EventList, EventSpec, Rate, cpus};
use crate::kernel::Walk;
use crate::output::UnknownFormat;
use crate::profile::{Attribution, Inlines};
use crate::symbols::{Debuginfod, SymbolOptions};
use crate::types::{Tgid, Tid};

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to sample.
    pub target: Target,
    /// CPUs asked for; `None` for all.
    pub cpus: Option<BTreeSet<CpuId>>,
    /// Command name of threads.
    pub comm: Option<String>,
    /// Whether kernel frames are taken.
    pub kernel_frames: bool,
    /// Whether user frames are taken.
    pub user_frames: bool,
    /// Whether children and new threads of targets are followed.
    pub follow: bool,
    /// Whether idle CPUs count.
    pub idle: bool,
    /// When to stop.
    pub duration: Option<Duration>,
    /// Rate asked for; `None` for the event's own default.
    pub rate: Option<Rate>,
    /// Event asked for; `None` for the default.
    pub event: Option<EventSpec>,
    /// Counters asked for; `None` for the default.
    pub counters: Option<EventList>,
    /// How counts reach functions.
    pub attribution: Attribution,
    /// How user stacks are walked.
    pub unwind: Walk,
    /// Bytes that unwind tables may take in the kernel.
    pub unwind_memory: u64,
    /// What names are resolved, and from where.
    pub symbols: SymbolOptions,
    /// Whether the kernel side says what it does.
    pub bpf_log: bool,
    /// Sizes of the sample program that are treated as refused.
    pub refuse_programs: usize,
    /// What is shown and written.
    pub output: OutputOptions,
}

/// What to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Processes.
    Processes(Vec<Tgid>),
    /// Threads.
    Threads(Vec<Tid>),
    /// The machine.
    All,
    /// A cgroup, by folder or by path in its hierarchy.
    Cgroup(PathBuf),
    /// A command to start.
    Command(Vec<OsString>),
}

/// Arguments that do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// An output of no known format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// A list of CPUs that is none.
    #[error("--cpu: {0}")]
    Cpus(#[from] cpus::CpuListError),
    /// A rate for an event that has one of its own.
    #[error("the event {0} says its period itself: leave --freq and --period out, or period=… in the event")]
    TwoRates(Box<EventSpec>),
    /// A comparison of no known format.
    #[error("cannot tell the format of `{0}` by its extension: a comparison is written as .svg or .json")]
    DiffFormat(String),
    /// A pattern that is none.
    #[error("--{option}: {error}")]
    Pattern {
        /// The option.
        option: &'static str,
        /// What is wrong.
        error: regex::Error,
    },
    /// Two outputs to one file.
    #[error("--output {0} is given twice")]
    SameOutput(String),
}

impl Options {
    /// Checks raw arguments.
    pub(super) fn check(args: Args) -> Result<Self, UsageError> {
        let target = if !args.pid.is_empty() {
            Target::Processes(
                args.pid
                    .into_iter()
                    .map(|pid| Tgid(pid.get()))
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
            )
        } else if !args.tid.is_empty() {
            Target::Threads(
                args.tid.into_iter().map(|tid| Tid(tid.get())).collect::<BTreeSet<_>>().into_iter().collect(),
            )
        } else if let Some(path) = args.cgroup {
            Target::Cgroup(path)
        } else if !args.command.is_empty() {
            Target::Command(args.command)
        } else {
            Target::All
        };
        let rate = args.freq.map(Rate::Frequency).or(args.period.map(Rate::Period));
        if let Some(event) = &args.event
            && event.own_rate().is_some()
            && rate.is_some()
        {
            return Err(UsageError::TwoRates(Box::new(event.clone())));
        }
        let output = args.output.check()?;
        Ok(Self {
            target,
            cpus: args.cpu.as_deref().map(cpus::parse_list).transpose()?,
            comm: args.comm,
            kernel_frames: !args.user_only,
            user_frames: !args.kernel_only,
            follow: !args.no_children,
            idle: args.idle,
            bpf_log: args.bpf_log,
            refuse_programs: args.refuse_programs,
            duration: args.duration,
            rate,
            event: args.event,
            counters: args.counters,
            attribution: match args.attribution {
                AttributionArg::Overflow => Attribution::Overflow,
                AttributionArg::Delta => Attribution::Delta,
            },
            unwind: match args.unwind {
                UnwindArg::Auto => Walk::Auto,
                UnwindArg::Dwarf => Walk::Tables,
                UnwindArg::Fp => Walk::FramePointer,
                UnwindArg::None => Walk::None,
            },
            unwind_memory: u64::from(args.unwind_memory.get()) << 20,
            symbols: SymbolOptions {
                inlines: output.view.inlines != Inlines::None,
                strip_generics: args.strip_generics,
                debug_dirs: args.debug_dir,
                time_limit: args.symbol_time,
                debuginfod: if args.no_debuginfod { None } else { Debuginfod::from_environment() },
            },
            output,
        })
    }
}
