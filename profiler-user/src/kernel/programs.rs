//! The BPF object: configured, loaded, and the followed tasks in its map.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{HashMap, Map, MapData, MapError};
use aya::programs::{Iter, PerfEvent, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use profiler_common::config::{Config, target, walk};
use profiler_common::counters;
use profiler_common::limits::{
    COMM_LEN, FEWER_USER_FRAMES, GENERATIONS, MAX_EVENTS, MAX_FOLLOWED, MAX_USER_FRAMES,
};
use profiler_common::sample::TableLayout;
use profiler_common::tally;

use super::bpf_log::BpfLog;
use super::link::{self, MappingIterator};
use super::{KernelError, btf, pid_namespace};
use crate::events::CountingEvent;
use crate::types::{Tgid, Tid};

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/bpfprof.bpf.o");

#[cfg(target_arch = "x86_64")]
const SAMPLE_PROGRAM: &str = "sample_x86_64";
#[cfg(target_arch = "aarch64")]
const SAMPLE_PROGRAM: &str = "sample_aarch64";

/// Bits of a user return address. aarch64 keeps pointer authentication codes above them (at most 52 address bits).
#[cfg(target_arch = "x86_64")]
const ADDRESS_MASK: u64 = u64::MAX;
#[cfg(target_arch = "aarch64")]
const ADDRESS_MASK: u64 = (1 << 52) - 1;

/// What the size of maps follows from, and what programs must know of the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Of one table.
    pub(super) tables: TableLayout,
    /// Possible CPUs.
    pub(super) cpus: u32,
    /// Counters that are read at samples.
    pub(super) counters: u32,
    /// Events, by bit, whose samples carry the period that begins in place of the one that ended.
    pub(super) late_periods: u32,
    /// Events, by bit, whose samples weigh what the event counted since the last one.
    pub(super) counted_weights: u32,
}

/// Words of the map of increases for so many slots; without counters it is not used, but must have one.
pub(super) fn increases(slots: u32, counters: u32) -> u32 {
    if counters == 0 { 1 } else { slots * counters::INCREASES_PER_SLOT }
}

/// Which tasks are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every task of the machine.
    All,
    /// These processes, all threads of each.
    Processes(Vec<Tgid>),
    /// These threads.
    Threads(Vec<Tid>),
    /// The tasks of a cgroup (version 2) and of those below it.
    Cgroup {
        /// The kernel's identifier of the cgroup: the inode number of its folder.
        id: u64,
        /// Its depth below the root of the hierarchy.
        level: u32,
    },
}

/// How user stacks are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Not at all.
    None,
    /// By frame pointers.
    FramePointer,
    /// By unwind tables, and by frame pointers where there are none.
    Auto,
    /// By unwind tables only.
    Tables,
}

/// What of the targets is sampled.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Whether children and new threads of the targets become targets.
    pub follow: bool,
    /// Command name a thread must have; longer names are cut as the kernel cuts them.
    pub comm: Option<String>,
    /// Whether idle CPUs count.
    pub idle: bool,
    /// How user stacks are walked.
    pub walk: Walk,
    /// Whether kernel stacks are taken.
    pub kernel_stacks: bool,
    /// Whether only samples that hit the kernel count.
    pub kernel_mode_only: bool,
    /// Length of the kernel's virtual object in pages of 4 KiB; 0 when there is none.
    pub vdso_pages: u32,
    /// Whether the programs that follow tasks say what they do.
    pub log: bool,
}

/// What a sample program can do: where a kernel's verifier refuses one, it may take a smaller one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSize {
    /// How user stacks are walked.
    pub walk: Walk,
    /// User frames kept of one stack.
    pub frame_limit: u32,
    /// Why the kernel refused the larger ones; `None` for the largest.
    pub refusal: Option<String>,
}

impl ProgramSize {
    /// All sizes for a way to walk, the largest first. A way that was asked for by name is not replaced.
    fn all(walk: Walk) -> Vec<Self> {
        let size = |walk, frame_limit| Self { walk, frame_limit, refusal: None };
        let mut sizes = vec![size(walk, MAX_USER_FRAMES)];
        if walk != Walk::None {
            sizes.push(size(walk, FEWER_USER_FRAMES));
        }
        if walk == Walk::Auto {
            sizes.push(size(Walk::FramePointer, FEWER_USER_FRAMES));
        }
        sizes
    }
}

/// The loaded object. Dropping it unloads everything.
pub(super) struct Programs {
    ebpf: Ebpf,
    log: BpfLog,
    size: ProgramSize,
}

impl Programs {
    /// Loads the object for these targets, with tables of this size for CPUs 0 to `cpus` − 1, and arms the following of children.
    ///
    /// The sample program is the largest that the kernel takes. The first `refuse` sizes are treated as if it refused them.
    pub(super) fn load(
        target: &Target,
        filter: &Filter,
        layout: Layout,
        refuse: usize,
    ) -> Result<Self, KernelError> {
        let mut programs = Self::load_largest(target, filter, layout, refuse)?;
        if pid_namespace::is_own() {
            let learn: &mut RawTracePoint = program(&mut programs.ebpf, "learn_namespace")?;
            learn.load().map_err(|error| refused(&error))?;
            let fd = learn.fd().map_err(|error| refused(&error))?;
            link::run_once(fd.as_fd()).map_err(KernelError::system("learning the pid namespace"))?;
        }
        programs.follow(target)?;
        if layout.counters > 0 {
            programs.attach_tracepoint("task_switch", "sched_switch")?;
        }
        if programs.walks() {
            programs.attach_tracepoint("free_area", "vm_unmapped_area")?;
            programs.load_iterator()?;
            programs.note_mappings(None)?;
        }
        Ok(programs)
    }

    fn load_largest(
        target: &Target,
        filter: &Filter,
        layout: Layout,
        refuse: usize,
    ) -> Result<Self, KernelError> {
        // The first refusal is of what was asked for.
        let mut first: Option<(String, KernelError)> = None;
        for (number, size) in ProgramSize::all(filter.walk).into_iter().enumerate() {
            let size = ProgramSize { refusal: first.as_ref().map(|(brief, _)| brief.clone()), ..size };
            let mut programs = Self::load_object(target, filter, layout, size)?;
            let sample: &mut PerfEvent = program(&mut programs.ebpf, SAMPLE_PROGRAM)?;
            let refusal = match sample.load() {
                Ok(()) if number >= refuse => return Ok(programs),
                Ok(()) => {
                    let cause = String::from("treated so for a test");
                    (cause.clone(), KernelError::Load { cause })
                }
                Err(error) => match verdict(&error) {
                    Some(brief) => (brief, refused(&error)),
                    None => return Err(refused(&error)),
                },
            };
            first.get_or_insert(refusal);
        }
        Err(first.map_or(KernelError::Object(SAMPLE_PROGRAM), |(_, error)| error))
    }

    fn load_object(
        target: &Target,
        filter: &Filter,
        layout: Layout,
        size: ProgramSize,
    ) -> Result<Self, KernelError> {
        let Layout { tables, cpus, counters, .. } = layout;
        let config = Shared(configuration(target, filter, &size, layout)?);
        let generations = cpus * GENERATIONS;
        let mut ebpf = EbpfLoader::new()
            .override_global("CONFIG", &config, true)
            .map_max_entries("SLOTS", generations * tables.slots)
            .map_max_entries("FRAMES", generations * tables.frames)
            .map_max_entries("FRAMES_USED", generations)
            .map_max_entries("TALLY", cpus * tally::WORDS_PER_CPU)
            .map_max_entries("PERIODS", cpus * MAX_EVENTS)
            .map_max_entries("READINGS", cpus)
            .map_max_entries("INCREASES", increases(generations * tables.slots, counters))
            .map_max_entries("RESIDUALS", cpus * counters::RESIDUALS_PER_CPU)
            .load(OBJECT)
            .map_err(|error| object_refused(&error))?;
        let log = BpfLog::take(&mut ebpf)?;
        Ok(Self { ebpf, log, size })
    }

    /// What the sample program can do.
    pub(super) fn size(&self) -> &ProgramSize {
        &self.size
    }

    fn walks(&self) -> bool {
        self.size.walk != Walk::None
    }

    /// Notes the mappings that a process has, or all processes: where targets were added, and where a process has mapped something.
    ///
    /// A process that ended meanwhile has none.
    pub(super) fn note_mappings(&self, of: Option<Tgid>) -> Result<(), KernelError> {
        if !self.walks() {
            return Ok(());
        }
        let name = "mapped_before";
        let program = self.ebpf.program(name).ok_or(KernelError::Object(name))?;
        let fd = program.fd().map_err(|error| refused(&error))?;
        match MappingIterator::create(fd.as_fd(), of).and_then(|iterator| iterator.run()) {
            Err(_) if of.is_some() => Ok(()),
            noted => noted.map_err(KernelError::system("iterating over mappings")),
        }
    }

    /// A map, once: who takes it writes and reads it from then on.
    pub(super) fn take<T: TryFrom<Map, Error = MapError>>(
        &mut self,
        name: &'static str,
    ) -> Result<T, KernelError> {
        let map = self.ebpf.take_map(name).ok_or(KernelError::Object(name))?;
        T::try_from(map).map_err(|_| KernelError::Object(name))
    }

    /// Passes on what programs said.
    pub(super) fn flush_log(&mut self) {
        self.log.flush();
    }

    /// The program that takes samples.
    pub(super) fn sample_program(&self) -> Result<BorrowedFd<'_>, KernelError> {
        let program = self.ebpf.program(SAMPLE_PROGRAM).ok_or(KernelError::Object(SAMPLE_PROGRAM))?;
        let fd = program.fd().map_err(|error| refused(&error))?;
        Ok(fd.as_fd())
    }

    /// Shows the programs the event of a counter on its CPU. It is shown for as long as the programs are there.
    pub(super) fn set_counter(&mut self, counter: usize, event: &CountingEvent) -> Result<(), KernelError> {
        let Some(Map::PerfEventArray(events)) = self.ebpf.map(&format!("COUNTER_{counter}")) else {
            return Err(KernelError::Object("map for that many counters"));
        };
        link::set_event(events.fd().as_fd(), event.cpu().0, event)
            .map_err(KernelError::system("showing a counter"))
    }

    /// A map that is read through memory.
    pub(super) fn array(&self, name: &'static str) -> Result<BorrowedFd<'_>, KernelError> {
        match self.ebpf.map(name) {
            Some(Map::Array(data)) => Ok(data.fd().as_fd()),
            _ => Err(KernelError::Object(name)),
        }
    }

    /// Adds targets while the programs run.
    pub(super) fn add_followed(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<(), KernelError> {
        let mut followed: HashMap<&mut MapData, u32, u32> = map(&mut self.ebpf, "FOLLOWED")?;
        for id in ids {
            followed.insert(id, 1, 0).map_err(|error| map_full(&error))?;
        }
        Ok(())
    }

    fn load_iterator(&mut self) -> Result<(), KernelError> {
        let btf = Btf::from_sys_fs().map_err(|error| KernelError::Load { cause: error_chain(&error) })?;
        let existing: &mut Iter = program(&mut self.ebpf, "mapped_before")?;
        existing.load("task_vma", &btf).map_err(|error| refused(&error))
    }

    /// Writes the targets to the map before the tracepoints that keep it up to date are armed: a child that a target
    /// has in between is found by the caller's scan of `/proc`.
    fn follow(&mut self, target: &Target) -> Result<(), KernelError> {
        match target {
            Target::Processes(ids) => self.add_followed(ids.iter().map(|id| id.0))?,
            Target::Threads(ids) => self.add_followed(ids.iter().map(|id| id.0))?,
            Target::All | Target::Cgroup { .. } => {}
        }
        for (name, tracepoint) in [
            ("task_fork", "sched_process_fork"),
            ("task_exec", "sched_process_exec"),
            ("task_exit", "sched_process_exit"),
        ] {
            self.attach_tracepoint(name, tracepoint)?;
        }
        Ok(())
    }

    fn attach_tracepoint(&mut self, name: &'static str, tracepoint: &str) -> Result<(), KernelError> {
        let program: &mut RawTracePoint = program(&mut self.ebpf, name)?;
        program.load().map_err(|error| refused(&error))?;
        program.attach(tracepoint).map_err(|error| refused(&error))?;
        Ok(())
    }
}

/// The configuration as aya wants to see it.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Shared(Config);

// SAFETY: `Config` is `repr(C)`, consists of integers only and has no padding (asserted where it is defined).
unsafe impl aya::Pod for Shared {}

fn configuration(
    target: &Target,
    filter: &Filter,
    size: &ProgramSize,
    layout: Layout,
) -> Result<Config, KernelError> {
    let (kind, cgroup_id, cgroup_level) = match target {
        Target::All => (target::ALL, 0, 0),
        Target::Processes(_) => (target::PROCESSES, 0, 0),
        Target::Threads(_) => (target::THREADS, 0, 0),
        Target::Cgroup { id, level } => (target::CGROUP, *id, *level),
    };
    let offsets = btf::offsets()?;
    Ok(Config {
        cgroup_id,
        address_mask: ADDRESS_MASK,
        comm: filter.comm.as_deref().map(comm_words).unwrap_or_default(),
        target: kind,
        cgroup_level,
        filter_comm: filter.comm.is_some().into(),
        follow: filter.follow.into(),
        idle: filter.idle.into(),
        walk: match size.walk {
            Walk::None => walk::NONE,
            Walk::FramePointer => walk::FRAME_POINTER,
            Walk::Auto => walk::AUTO,
            Walk::Tables => walk::TABLES,
        },
        kernel_stacks: filter.kernel_stacks.into(),
        kernel_mode_only: filter.kernel_mode_only.into(),
        user_frame_limit: size.frame_limit,
        tables: layout.tables,
        offsets: offsets.task,
        mapping_offsets: offsets.mapping,
        vdso_pages: filter.vdso_pages,
        namespaced: pid_namespace::is_own().into(),
        log: filter.log.into(),
        late_periods: layout.late_periods,
        counters: layout.counters,
        page_shift: rustix::param::page_size().ilog2(),
        counted_weights: layout.counted_weights,
    })
}

/// A command name as the kernel stores it: cut to 15 bytes, padded with NULs.
fn comm_words(name: &str) -> [u64; 2] {
    let mut bytes = [0; COMM_LEN];
    let len = name.len().min(COMM_LEN - 1);
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    let (low, high) = bytes.split_at(8);
    [low, high].map(|half| half.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

fn map<'a, T>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<T, KernelError>
where
    T: TryFrom<&'a mut Map, Error = MapError>,
{
    let map = ebpf.map_mut(name).ok_or(KernelError::Object(name))?;
    map.try_into().map_err(|_| KernelError::Object(name))
}

fn program<'a, T>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut T, KernelError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let program = ebpf.program_mut(name).ok_or(KernelError::Object(name))?;
    program.try_into().map_err(|_| KernelError::Object(name))
}

fn object_refused(error: &EbpfError) -> KernelError {
    KernelError::Load { cause: error_chain(error) }
}

/// What the verifier refused a program for, in a line; `None` for another error, which a smaller program would meet too.
fn verdict(error: &ProgramError) -> Option<String> {
    let ProgramError::LoadError { io_error, verifier_log } = error else { return None };
    // EACCES is the verifier's, EPERM and lack of memory are not.
    if matches!(io_error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) {
        return None;
    }
    let log = verifier_log.to_string();
    let last = log.lines().take_while(|line| !line.starts_with(VERIFIER_STATISTICS)).last();
    Some(last.map_or_else(|| io_error.to_string(), |last| format!("{io_error}; {last}")))
}

/// The verifier's log is long; the lines before its statistics say what it stumbled over.
fn refused(error: &ProgramError) -> KernelError {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        let lines: Vec<&str> =
            log.lines().take_while(|line| !line.starts_with(VERIFIER_STATISTICS)).collect();
        let last = &lines[lines.len().saturating_sub(VERIFIER_LINES)..];
        return KernelError::Load { cause: format!("{io_error}; the verifier says: {}", last.join(" / ")) };
    }
    KernelError::Load { cause: error_chain(error) }
}

/// Begins what follows the verdict in the verifier's log.
const VERIFIER_STATISTICS: &str = "verification time";

/// Lines of the verifier's log that are shown.
const VERIFIER_LINES: usize = 12;

fn map_full(error: &MapError) -> KernelError {
    KernelError::Load {
        cause: format!("{}; at most {MAX_FOLLOWED} processes can be followed at a time", error_chain(error)),
    }
}

fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_asked_for_by_name_is_replaced() {
        let sizes = |walk| -> Vec<(Walk, u32)> {
            ProgramSize::all(walk).into_iter().map(|size| (size.walk, size.frame_limit)).collect()
        };
        assert_eq!(sizes(Walk::Auto), [(Walk::Auto, 512), (Walk::Auto, 127), (Walk::FramePointer, 127)]);
        assert_eq!(sizes(Walk::Tables), [(Walk::Tables, 512), (Walk::Tables, 127)]);
        assert_eq!(sizes(Walk::None), [(Walk::None, 512)]);
    }

    #[test]
    fn names_are_laid_out_as_the_kernel_does() {
        let memory = |name| comm_words(name).map(u64::to_le_bytes).concat();
        assert_eq!(memory("sh"), b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(memory("a-very-long-command"), b"a-very-long-com\0");
    }
}
