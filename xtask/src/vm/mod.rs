//! `vm`: runs bpfprof on other kernels and another machine, in QEMU.

mod aarch64_sysroot;
mod console;
mod emulator;
mod guest;
mod initramfs;
mod lane;
mod list;
mod measurements;
mod packages;
mod payload;
mod pmu_trials;
mod profile;
mod qemu;
mod smp_memory;
mod smp_trials;
mod trials;

use std::{
    cell::OnceCell,
    fmt, fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    aarch64_sysroot::Sysroot,
    console::{Console, Outcome},
    initramfs::Initramfs,
    lane::{Lane, Machine, Time},
    packages::Packages,
    payload::Payload,
    qemu::Qemu,
    trials::{Trial, figures, trials},
};
use crate::{cargo::host_triple, debian, privilege::Privilege, workspace::Workspace};

#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Install no Debian package; lanes that need a missing one are not run
    #[arg(long)]
    no_install: bool,
    /// The lanes; all without any
    lanes: Vec<Lane>,
}

impl Options {
    /// The lanes that come out the same however busy the host is.
    pub(crate) fn independent_of_load() -> Self {
        let lanes = Lane::ALL.into_iter().filter(|lane| lane.time() == Time::Instructions);
        Self { lanes: lanes.collect(), ..Self::default() }
    }
}

/// Runs lanes and prints a line for each; whether all that ran passed, and at least one, and all that were asked for by name.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let is_choice = !options.lanes.is_empty();
    let lanes: &[Lane] = if is_choice { &options.lanes } else { &Lane::ALL };
    let host = Host { workspace, options, folder: workspace.target().join("vm") };
    let mut passed = 0;
    let mut failed = 0;
    let mut not_run = 0;
    for &lane in lanes {
        let start = Instant::now();
        eprintln!("xtask: lane {}", lane.name());
        let verdict = host.run_lane(lane);
        let counter = match verdict {
            Verdict::Passed { .. } => &mut passed,
            Verdict::Failed(_) => &mut failed,
            Verdict::NotRun(_) => &mut not_run,
        };
        *counter += 1;
        println!("{:<12}  {:>6.1} s  {verdict}", lane.name(), start.elapsed().as_secs_f64());
    }
    Ok(failed == 0 && passed > 0 && !(is_choice && not_run > 0))
}

/// How a lane ended.
enum Verdict {
    Passed { trials: usize, kernel: String },
    Failed(String),
    NotRun(String),
}

/// What the lanes share.
struct Host<'a> {
    workspace: &'a Workspace,
    options: &'a Options,
    /// Holds all that is fetched and built; removing it makes everything be fetched anew.
    folder: PathBuf,
}

/// What a lane needs of others, before anything of this workspace is built.
struct Ingredients {
    qemu: Qemu,
    kernel: PathBuf,
    busybox: PathBuf,
    sysroot: Option<Sysroot>,
}

impl Host<'_> {
    fn run_lane(&self, lane: Lane) -> Verdict {
        let ingredients = match self.gather(lane) {
            Ok(ingredients) => ingredients,
            Err(error) => return Verdict::NotRun(format!("{error:#}")),
        };
        let trials = trials(lane);
        match self.boot(lane, &ingredients, &trials) {
            Ok(console) => judge(lane, &console, &trials),
            Err(error) => Verdict::Failed(format!("{error:#}")),
        }
    }

    fn gather(&self, lane: Lane) -> Result<Ingredients> {
        let machine = lane.machine();
        if machine == Machine::X86_64 {
            let host = host_triple()?;
            ensure!(
                host == machine.triple(),
                "its bpfprof is built by the host's own toolchain, which is for {host}"
            );
        }
        self.install_packages(machine)?;
        let architecture = machine.debian_architecture();
        let lists = OnceCell::new();
        let packages = || -> Result<&Packages> {
            if lists.get().is_none() {
                let fetched = Packages::update(&self.folder.join("apt").join(architecture), architecture)?;
                let _ = lists.set(fetched);
            }
            lists.get().context("the package lists are gone")
        };
        let sysroot = match machine {
            Machine::X86_64 => None,
            Machine::Aarch64 => Some(Sysroot::fetch(&self.folder, packages)?),
        };
        let busybox = self.folder.join(architecture).join("bin/busybox");
        if !busybox.exists() {
            packages()?.unpack("busybox-static", "./bin/busybox", &self.folder.join(architecture))?;
        }
        let qemu = Qemu::find_or_fetch(&self.folder, machine)?;
        Ok(Ingredients { qemu, kernel: self.kernel(lane, packages)?, busybox, sysroot })
    }

    fn install_packages(&self, machine: Machine) -> Result<()> {
        let missing = debian::missing(match machine {
            Machine::X86_64 => debian::FOR_X86_64_VM,
            Machine::Aarch64 => debian::FOR_AARCH64_VM,
        });
        if missing.is_empty() {
            return Ok(());
        }
        if self.options.no_install {
            bail!("these Debian packages are missing and not installed, as asked: {}", missing.join(", "));
        }
        debian::install(&missing, Privilege::acquire())
    }

    /// The lane's kernel, fetched once for all lanes that run it.
    fn kernel<'p>(&self, lane: Lane, packages: impl Fn() -> Result<&'p Packages>) -> Result<PathBuf> {
        let folder = self.folder.join(lane.kernel_package());
        let boot = folder.join("boot");
        let image = || packages::only_file_with_prefix(&boot, "vmlinuz-");
        if image().is_none() {
            let packages = packages()?;
            let package = packages.kernel_image(lane.kernel_package())?;
            packages.unpack(&package, "./boot/vmlinuz-*", &folder)?;
        }
        image().with_context(|| format!("{} holds no kernel image", boot.display()))
    }

    /// Builds what goes into the guest, runs it, and returns what it told.
    fn boot(&self, lane: Lane, ingredients: &Ingredients, trials: &[Trial]) -> Result<Console> {
        let machine = lane.machine();
        let payload = payload::build(self.workspace, machine, ingredients.sysroot.as_ref(), &self.folder)?;
        let folder = self.lane_folder(lane);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        let init = guest::init(trials, lane.hertz());
        let archive = folder.join("initramfs.cpio");
        fs::write(&archive, initramfs(&ingredients.busybox, &payload, &init)?)
            .with_context(|| format!("{} cannot be written", archive.display()))?;
        let console = folder.join("console.log");
        emulator::boot(&ingredients.qemu, lane, &ingredients.kernel, &archive, &console)
            .with_context(|| format!("the console is in {}", console.display()))?;
        Ok(Console::read(&String::from_utf8_lossy(&read(&console)?)))
    }

    fn lane_folder(&self, lane: Lane) -> PathBuf {
        self.folder.join(lane.name())
    }
}

fn initramfs(busybox: &Path, payload: &Payload, init: &str) -> Result<Vec<u8>> {
    let mut archive = Initramfs::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    // The kernel opens it for init before anything is mounted.
    archive.character_device("dev/console", 5, 1);
    archive.program("init", init.as_bytes());
    archive.program("bin/busybox", &read(busybox)?);
    archive.program("bin/bpfprof", &read(&payload.bpfprof)?);
    for library in &payload.libraries {
        let path = library.to_str().with_context(|| format!("{} is not UTF-8", library.display()))?;
        archive.program(path.trim_start_matches('/'), &read(library)?);
    }
    archive.program("bin/chain", &read(&payload.chain)?);
    archive.program("bin/chain-fp", &read(&payload.chain_fp)?);
    archive.program("bin/turns", &read(&payload.turns)?);
    Ok(archive.finish())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("{} cannot be read", file.display()))
}

/// Tells for each trial whether its claim holds, and what was measured besides.
fn judge(lane: Lane, console: &Console, trials: &[Trial]) -> Verdict {
    let Some(kernel) = &console.kernel else {
        return Verdict::Failed("the guest did not come up".to_owned());
    };
    let mut failed = Vec::new();
    for trial in trials {
        let none = Outcome::default();
        let outcome = console.outcome(trial.name).unwrap_or(&none);
        match (trial.check)(outcome) {
            Ok(()) => eprintln!("  ok      {}: {}", trial.name, trial.claim),
            Err(error) => {
                eprintln!("  FAILED  {}: {}: {error:#}", trial.name, trial.claim);
                tell_last_words(outcome);
                failed.push(trial.name);
            }
        }
    }
    // Where there is nothing to read a trial has failed.
    for figure in figures(lane, console).unwrap_or_default() {
        println!("  {figure}");
    }
    if !failed.is_empty() {
        return Verdict::Failed(format!("on Linux {kernel}: {}", failed.join(", ")));
    }
    if !console.is_done {
        return Verdict::Failed(format!("Linux {kernel} did not come to the end of the trials"));
    }
    Verdict::Passed { trials: trials.len(), kernel: kernel.clone() }
}

/// The end of what bpfprof said: the verifier's log has its reason there.
fn tell_last_words(outcome: &Outcome) {
    const LINES: usize = 25;
    let lines: Vec<&str> = outcome.stderr().trim_end().lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(LINES)) {
        eprintln!("          | {line}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { trials, kernel } => write!(formatter, "ok: {trials} trials on Linux {kernel}"),
            Self::Failed(reason) => write!(formatter, "FAILED: {reason}"),
            Self::NotRun(reason) => write!(formatter, "not run: {reason}"),
        }
    }
}
