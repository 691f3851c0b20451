//! Burns CPU time in functions of known names: alone, in threads, in forked children, across exec.
//!
//! `spin NAME[,NAME…] SECONDS [OPTION…]` calls `spin_alpha`, `spin_beta` or `spin_gamma` for that much CPU time of the
//! thread. Threads and children take the names in turn.
//!
//! * `--threads N`: in N threads that are called like their function's last word
//! * `--fork N`: in N children that end at once after it; the parent waits
//! * `--generations G`: with `--fork`, so many generations fork N children each, and only the last one burns
//! * `--daemon`: in a process of its own session whose parents have ended; this process ends at once
//! * `--exec NAME`: afterwards as a new image with this name
//! * `--comm TEXT`: under this command name

use std::ffi::CString;
use std::hint::black_box;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bpfprof_tests::cpu_time::burn;
use rustix::process::{WaitOptions, setsid, wait};

#[derive(Default)]
struct Options {
    names: Vec<String>,
    time: Duration,
    threads: usize,
    fork: usize,
    generations: usize,
    daemon: bool,
    exec: Option<String>,
    comm: Option<String>,
}

impl Options {
    /// The name for the thread or child of this number.
    fn name(&self, number: usize) -> &str {
        &self.names[number % self.names.len()]
    }
}

fn main() -> Result<()> {
    let options = parse(std::env::args().skip(1))?;
    if let Some(comm) = &options.comm {
        rustix::thread::set_name(&CString::new(comm.as_str())?)?;
    }
    if options.daemon {
        return become_daemon(&options);
    }
    if options.fork > 0 {
        return fork_children(&options, options.generations.max(1));
    }
    if options.threads > 0 {
        return run_threads(&options);
    }
    spin(options.name(0), options.time)?;
    match &options.exec {
        Some(name) => exec(name, options.time),
        None => Ok(()),
    }
}

#[inline(never)]
fn spin_alpha(time: Duration) {
    black_box(burn::<0x0101_0101>(time));
}

#[inline(never)]
fn spin_beta(time: Duration) {
    black_box(burn::<0x0202_0203>(time));
}

#[inline(never)]
fn spin_gamma(time: Duration) {
    black_box(burn::<0x0303_0305>(time));
}

fn spin(name: &str, time: Duration) -> Result<()> {
    match name {
        "alpha" => spin_alpha(time),
        "beta" => spin_beta(time),
        "gamma" => spin_gamma(time),
        _ => bail!("unknown name {name}: alpha, beta or gamma"),
    }
    Ok(())
}

fn run_threads(options: &Options) -> Result<()> {
    let threads = (0..options.threads).map(|number| {
        let (name, time) = (options.name(number).to_owned(), options.time);
        thread::Builder::new().name(name.clone()).spawn(move || spin(&name, time))
    });
    let threads = threads.collect::<io::Result<Vec<_>>>()?;
    threads.into_iter().try_for_each(|thread| thread.join().ok().context("a thread panicked")?)
}

fn fork_children(options: &Options, generations: usize) -> Result<()> {
    for number in 0..options.fork {
        if fork()?.is_none() {
            let done = if generations > 1 {
                fork_children(options, generations - 1)
            } else {
                spin(options.name(number), options.time)
            };
            exit_at_once(done.is_ok());
        }
    }
    while wait(WaitOptions::empty()).is_ok() {}
    Ok(())
}

fn become_daemon(options: &Options) -> Result<()> {
    if fork()?.is_none() {
        let orphaned = setsid().is_ok() && matches!(fork(), Ok(None));
        exit_at_once(orphaned && spin(options.name(0), options.time).is_ok());
    }
    // The parent in the middle has ended when this returns.
    wait(WaitOptions::empty())?;
    Ok(())
}

fn exec(name: &str, time: Duration) -> Result<()> {
    let image = std::env::current_exe()?;
    let mut command = Command::new(image);
    Err(command.arg(name).arg(time.as_secs_f64().to_string()).exec()).context("exec")
}

/// Forks; the child gets `None`.
fn fork() -> io::Result<Option<i32>> {
    // SAFETY: this process has one thread, so the child may go on as the parent would.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

fn exit_at_once(well: bool) -> ! {
    // SAFETY: `_exit` ends the process and touches none of its memory.
    unsafe { libc::_exit(i32::from(!well)) }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut next = |what: &str| {
        arguments.next().with_context(|| format!("{what} is missing: spin NAME SECONDS [OPTION…]"))
    };
    let names: Vec<String> =
        next("NAME")?.split(',').map(|name| name.trim_start_matches("spin_").to_owned()).collect();
    let time = Duration::try_from_secs_f64(next("SECONDS")?.parse()?)?;
    let mut options = Options { names, time, ..Options::default() };
    while let Ok(option) = next("") {
        match option.as_str() {
            "--threads" => options.threads = next("N")?.parse()?,
            "--fork" => options.fork = next("N")?.parse()?,
            "--generations" => options.generations = next("G")?.parse()?,
            "--daemon" => options.daemon = true,
            "--exec" => options.exec = Some(next("NAME")?),
            "--comm" => options.comm = Some(next("TEXT")?),
            _ => bail!("unknown option {option}"),
        }
    }
    ensure!(
        options.names.iter().all(|name| ["alpha", "beta", "gamma"].contains(&name.as_str())),
        "unknown name"
    );
    Ok(options)
}
