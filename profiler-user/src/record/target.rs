//! From the target on the command line to the one in the kernel, and to what ends the run.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::cgroup;
use super::command::{self, Command};
use super::readiness::watch;
use crate::cli::{Options, Target};
use crate::kernel;
use crate::processes::{Scope, process_of_thread};
use crate::types::{Tgid, Tid};

/// A target that exists.
pub(super) struct ResolvedTarget {
    /// For the kernel side.
    pub kernel: kernel::Target,
    /// For the header.
    pub description: String,
    /// Processes whose mappings must be known.
    pub scope: Scope,
    /// The processes of the target that exist already; empty for the whole machine and for cgroups.
    pub processes: Vec<Tgid>,
    /// The command that was started.
    pub launched: Option<Tgid>,
    /// The file it will execute, as far as it can be told beforehand.
    pub program: Option<PathBuf>,
    /// Path of the cgroup that is the target, as `/proc/PID/cgroup` shows it.
    pub cgroup: Option<String>,
    /// What ends the run.
    pub watch: Watch,
}

/// The lives that a run depends on.
pub(super) struct Watch {
    processes: Vec<OwnedFd>,
    threads: Vec<File>,
}

/// Looks the target up.
pub(super) fn resolve(options: &Options, command: Option<&Command>) -> anyhow::Result<ResolvedTarget> {
    let children = if options.follow { " and its children" } else { "" };
    let none = || Watch { processes: Vec::new(), threads: Vec::new() };
    match (&options.target, command) {
        (_, Some(command)) => Ok(ResolvedTarget {
            kernel: kernel::Target::Processes(vec![command.tgid]),
            description: format!("command {}{children}", command.program),
            scope: Scope::Descendants,
            processes: vec![command.tgid],
            launched: Some(command.tgid),
            program: command.path(),
            cgroup: None,
            watch: none(),
        }),
        (Target::Processes(tgids), None) => {
            let processes = tgids.iter().map(|&tgid| watch_process(tgid)).collect::<anyhow::Result<_>>()?;
            Ok(ResolvedTarget {
                kernel: kernel::Target::Processes(tgids.clone()),
                description: describe(("process", "processes"), tgids.iter().map(|tgid| tgid.0), children),
                scope: Scope::Descendants,
                processes: tgids.clone(),
                launched: None,
                program: None,
                cgroup: None,
                watch: Watch { processes, threads: Vec::new() },
            })
        }
        (Target::Threads(tids), None) => {
            let threads = tids.iter().map(|&tid| watch_thread(tid)).collect::<anyhow::Result<Vec<_>>>()?;
            let (threads, mut processes): (Vec<File>, Vec<Tgid>) = threads.into_iter().unzip();
            processes.dedup();
            let children = if options.follow { " and what they start" } else { "" };
            Ok(ResolvedTarget {
                kernel: kernel::Target::Threads(tids.clone()),
                description: describe(("thread", "threads"), tids.iter().map(|tid| tid.0), children),
                scope: Scope::Descendants,
                processes,
                launched: None,
                program: None,
                cgroup: None,
                watch: Watch { processes: Vec::new(), threads },
            })
        }
        (Target::Cgroup(path), None) => {
            let cgroup::Cgroup { id, level, path: in_hierarchy } = cgroup::find(path)?;
            Ok(ResolvedTarget {
                kernel: kernel::Target::Cgroup { id, level },
                description: format!("cgroup {}", path.display()),
                scope: Scope::All,
                processes: Vec::new(),
                launched: None,
                program: None,
                cgroup: Some(in_hierarchy),
                watch: none(),
            })
        }
        (Target::All | Target::Command(_), None) => Ok(ResolvedTarget {
            kernel: kernel::Target::All,
            description: match kernel::in_own_pid_namespace() {
                true => "all processes of this pid namespace".into(),
                false => "the whole machine".into(),
            },
            scope: Scope::All,
            processes: Vec::new(),
            launched: None,
            program: None,
            cgroup: None,
            watch: none(),
        }),
    }
}

impl Watch {
    /// Returns when the last process that was asked for has ended; never when none was.
    pub(super) async fn processes_ended(&mut self) {
        if self.processes.is_empty() {
            return std::future::pending().await;
        }
        while let Some(process) = self.processes.last() {
            let Ok(process) = process.try_clone().and_then(watch) else {
                return std::future::pending().await;
            };
            if process.readable().await.is_err() {
                return std::future::pending().await;
            }
            self.processes.pop();
        }
    }

    /// Whether any of the threads asked for lives; true when none was.
    pub(super) fn threads_live(&mut self) -> bool {
        self.threads.is_empty() || self.threads.iter_mut().any(is_alive)
    }
}

fn watch_process(tgid: Tgid) -> anyhow::Result<OwnedFd> {
    match process_of_thread(Tid(tgid.0)) {
        None => bail!("there is no process {tgid}"),
        Some(leader) if leader != tgid => {
            bail!(
                "{tgid} is a thread of process {leader}: use --tid {tgid} for the thread, or --pid {leader} for the process"
            )
        }
        Some(_) => command::pidfd(tgid).with_context(|| format!("cannot watch process {tgid}")),
    }
}

fn watch_thread(tid: Tid) -> anyhow::Result<(File, Tgid)> {
    let process = process_of_thread(tid).with_context(|| format!("there is no thread {tid}"))?;
    let stat = File::open(format!("/proc/{process}/task/{tid}/stat"))
        .with_context(|| format!("cannot watch thread {tid}"))?;
    Ok((stat, process))
}

/// The file belongs to this very thread: it cannot be read once the thread is gone, even if its number is used again.
fn is_alive(stat: &mut File) -> bool {
    let mut text = String::new();
    if stat.rewind().is_err() || stat.read_to_string(&mut text).is_err() {
        return false;
    }
    // The state follows the name, which may hold anything but ends with the last parenthesis (proc_pid_stat(5)).
    let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn describe(
    (one, many): (&str, &str),
    numbers: impl ExactSizeIterator<Item = u32>,
    children: &str,
) -> String {
    let count = numbers.len();
    let named: Vec<String> = numbers
        .map(|number| match fs::read_to_string(format!("/proc/{number}/comm")) {
            Ok(comm) => format!("{number} ({})", comm.trim_end_matches('\n')),
            Err(_) => number.to_string(),
        })
        .collect();
    match named.as_slice() {
        [named] => format!("{one} {named}{children}"),
        _ => format!("{count} {many} {}{}", named.join(", "), children.replace("its", "their")),
    }
}
