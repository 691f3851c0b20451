//! Sampling on all CPUs: one event and one link each, and the tables behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Sum;
use std::ops::AddAssign;

use aya::maps::{MapData, RingBuf};
use bytes::Buf as _;
use profiler_common::limits::{MAX_KERNEL_FRAMES, MAX_USER_FRAMES};
use profiler_common::mapping::{FileKey, FileRequest};
use profiler_common::sample::TableLayout;
use profiler_common::tally::Fate;

use super::KernelError;
use super::idle::IdleTime;
use super::link::PerfLink;
use super::programs::{Filter, Programs, Target};
use super::tables::{RawSample, Tables};
use super::unwind_tables::{Placed, UnwindTables};
use crate::events::{Counted, CpuId, EventSpec, HostFacts, Precise, Rate, Refusal, SamplingEvent, cpus};
use crate::processes::ObjectId;
use crate::types::Tgid;
use crate::unwind::Table;

/// How often the tables are drained, in times a second. The size of the tables follows from it.
pub const DRAINS_PER_SECOND: u32 = 5;

/// What to sample, and where.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    /// The event.
    pub event: EventSpec,
    /// How often.
    pub rate: Rate,
    /// Precision the event was found to open with.
    pub precise: Precise,
    /// Which tasks.
    pub target: Target,
    /// What of them.
    pub filter: Filter,
    /// The CPUs asked for; `None` for all.
    pub cpus: Option<BTreeSet<CpuId>>,
    /// Bytes that unwind tables may take in the kernel.
    pub unwind_memory: u64,
    /// What the host allows, for explaining a refusal.
    pub host: HostFacts,
}

/// Programs, tables and events. Dropping it detaches and closes everything.
pub struct Sampler {
    options: SamplerOptions,
    armed: BTreeMap<CpuId, Armed>,
    tables: Tables,
    unwind_tables: UnwindTables,
    file_requests: RingBuf<MapData>,
    programs: Programs,
    running: bool,
    retired: Retired,
    idle_time: IdleTime,
}

/// An event with the sample program attached. The link goes first.
struct Armed {
    _link: PerfLink,
    event: SamplingEvent,
}

/// What events of CPUs that went offline had counted.
#[derive(Default)]
struct Retired {
    counted: u64,
    throttles: u64,
}

/// A number of samples and their weight in the event's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Samples.
    pub samples: u64,
    /// Sum of their periods.
    pub weight: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight += other.weight;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}

/// What became of everything the event counted. Every delivery is in exactly one of the amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Samples of targets, in the profile.
    pub kept: Amount,
    /// Samples of other tasks.
    pub not_target: Amount,
    /// Samples of idle CPUs.
    pub idle: Amount,
    /// Samples in user mode while only the kernel was asked for.
    pub user_mode_left_out: Amount,
    /// Samples that were wanted and are gone, by cause; causes without any are absent.
    pub lost: Vec<(Lost, Amount)>,
    /// What the event counted on all CPUs, scaled for the time it had no counter.
    pub counted: u64,
    /// What of that it counted on idle CPUs, where samples may not come: idle time for the clocks, else nothing.
    pub counted_idle: u64,
    /// Times that the kernel stopped an event for the rest of a tick because it came too often.
    pub throttles: u64,
    /// Processes or threads that could not be followed.
    pub not_followed: u64,
}

/// Why a wanted sample is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// The sample table of the CPU was full.
    TableFull,
    /// The frame store of the CPU was full.
    FramesFull,
    /// The kernel gave the program no working space.
    NoScratch,
}

impl Lost {
    /// The cause in words that fit behind "lost:".
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::TableFull => "the kernel's sample table was full",
            Self::FramesFull => "the kernel's frame store was full",
            Self::NoScratch => "the kernel gave no working space",
        }
    }
}

impl Accounting {
    /// Sum of the periods of all deliveries.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.fates().map(|amount| amount.weight).sum()
    }

    fn delivered_samples(&self) -> u64 {
        self.fates().map(|amount| amount.samples).sum()
    }

    fn fates(&self) -> impl Iterator<Item = Amount> {
        let lost = self.lost.iter().map(|(_, amount)| *amount);
        [self.kept, self.not_target, self.idle, self.user_mode_left_out].into_iter().chain(lost)
    }

    /// Share of what the event counted that came without a sample: where programs were not run, or the kernel throttled.
    ///
    /// `None` for so few samples that the last, unfinished periods would make up much of it.
    #[must_use]
    pub fn undelivered(&self) -> Option<f64> {
        const FEW: u64 = 100;
        let counted = self.counted.saturating_sub(self.counted_idle);
        let delivered = self.delivered().saturating_sub(self.idle.weight.min(self.counted_idle));
        if self.delivered_samples() < FEW || counted == 0 {
            return None;
        }
        Some((1.0 - delivered as f64 / counted as f64).max(0.0))
    }

    /// All that is known to be lost.
    #[must_use]
    pub fn lost_total(&self) -> Amount {
        self.lost.iter().map(|(_, amount)| *amount).sum()
    }
}

impl Sampler {
    /// Loads the programs and opens the events, disabled.
    ///
    /// The targets' children are followed from here on.
    pub fn load(options: SamplerOptions) -> Result<Self, KernelError> {
        let cpu_limit = cpus::possible()?.last().map_or(1, |cpu| cpu.0 + 1);
        let layout = table_layout(options.rate, cpu_limit);
        let mut programs = Programs::load(&options.target, &options.filter, layout, cpu_limit)?;
        let tables = Tables::map(&programs, layout, cpu_limit)?;
        let unwind_tables = UnwindTables::new(&programs, options.unwind_memory)?;
        let file_requests = programs.take_file_requests()?;
        let mut sampler = Self {
            options,
            armed: BTreeMap::new(),
            tables,
            unwind_tables,
            file_requests,
            programs,
            running: false,
            retired: Retired::default(),
            idle_time: IdleTime::default(),
        };
        sampler.follow_cpus(&cpus::online()?)?;
        if sampler.armed.is_empty() {
            return Err(KernelError::NoCpu);
        }
        Ok(sampler)
    }

    /// Adds targets: processes that existed when the following of children was armed.
    pub fn add_followed(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<(), KernelError> {
        self.programs.add_followed(ids)?;
        self.programs.note_mappings(None)
    }

    /// Tells the kernel side of what a process has mapped, before a sample has to look for it.
    pub fn note_mappings(&mut self, tgid: Tgid) -> Result<(), KernelError> {
        self.programs.note_mappings(Some(tgid))
    }

    /// Makes the kernel side look the mappings of a process up again: one of them was replaced.
    pub fn forget_mappings(&mut self, tgid: Tgid) -> Result<(), KernelError> {
        self.programs.forget_mappings(tgid)
    }

    /// Files that samples hit and nothing is known of. The kernel asks once for each.
    pub fn file_requests(&mut self) -> Vec<FileRequest> {
        let mut requests = Vec::new();
        while let Some(bytes) = self.file_requests.next() {
            let mut bytes: &[u8] = &bytes;
            let (file, address, tgid) =
                (bytes.try_get_u64_ne(), bytes.try_get_u64_ne(), bytes.try_get_u32_ne());
            if let (Ok(file), Ok(address), Ok(tgid)) = (file, address, tgid) {
                requests.push(FileRequest { file: FileKey(file), address, tgid, padding: 0 });
            }
        }
        requests
    }

    /// Makes the object of a file known: its frames are recognised in every process. `will_follow` says whether a table may still come.
    pub fn announce(
        &mut self,
        file: FileKey,
        object: ObjectId,
        will_follow: bool,
    ) -> Result<(), KernelError> {
        UnwindTables::announce(&mut self.programs, file, object, will_follow)
    }

    /// Gives the kernel side the unwind table of an object.
    pub fn place_table(
        &mut self,
        file: FileKey,
        object: ObjectId,
        table: &Table,
    ) -> Result<Placed, KernelError> {
        self.unwind_tables.place(&mut self.programs, file, object, table)
    }

    /// Bytes that unwind tables take in the kernel.
    pub fn unwind_bytes(&self) -> u64 {
        self.unwind_tables.bytes()
    }

    /// Starts sampling.
    pub fn start(&mut self) -> Result<(), KernelError> {
        self.running = true;
        self.idle_time = IdleTime::now();
        self.each_event(SamplingEvent::enable).map_err(KernelError::system("enabling a sampling event"))
    }

    /// Stops sampling. What was sampled stays in the tables.
    pub fn stop(&mut self) -> Result<(), KernelError> {
        self.running = false;
        self.each_event(SamplingEvent::disable).map_err(KernelError::system("disabling a sampling event"))
    }

    /// Opens events on CPUs that came online and lets go of those that went offline: the kernel does not take an event up again.
    pub fn follow_cpus(&mut self, online: &BTreeSet<CpuId>) -> Result<(), KernelError> {
        let wanted: BTreeSet<CpuId> = match &self.options.cpus {
            Some(asked) => asked.intersection(online).copied().collect(),
            None => online.clone(),
        };
        let gone: Vec<CpuId> = self.armed.keys().filter(|cpu| !wanted.contains(cpu)).copied().collect();
        for cpu in gone {
            self.retire(cpu);
        }
        for cpu in wanted {
            if !self.armed.contains_key(&cpu) {
                self.arm(cpu)?;
            }
        }
        Ok(())
    }

    /// The CPUs that are sampled.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.armed.keys().copied()
    }

    /// Changes tables: all samples from before the call are in those that the next [`Self::drain`] reads.
    pub fn switch_tables(&mut self) {
        self.tables.switch();
    }

    /// Reads and empties the tables that were left.
    pub fn drain(&mut self, each: impl FnMut(&RawSample<'_>)) {
        self.tables.drain(each);
        self.drain_notices();
        self.programs.flush_log();
    }

    /// What became of everything so far.
    pub fn accounting(&mut self) -> Accounting {
        self.drain_notices();
        let mut counted = self.retired.counted;
        for armed in self.armed.values_mut() {
            counted += armed.event.read().map_or(0, |count| expected(&self.options.event, count));
        }
        Accounting {
            kept: self.amount(Fate::Kept),
            not_target: self.amount(Fate::NotTarget),
            idle: self.amount(Fate::Idle),
            user_mode_left_out: self.amount(Fate::UserModeLeftOut),
            lost: self.lost().filter(|(_, amount)| amount.samples > 0).collect(),
            counted,
            counted_idle: if self.options.event.is_clock() {
                self.idle_time.since_start(self.cpus())
            } else {
                0
            },
            throttles: self.retired.throttles,
            not_followed: self.tables.not_followed(),
        }
    }

    /// Samples in the profile and samples lost so far. Unlike [`Self::accounting`] it asks the kernel nothing.
    pub fn kept_and_lost(&self) -> (Amount, Amount) {
        (self.amount(Fate::Kept), self.lost().map(|(_, amount)| amount).sum())
    }

    /// Takes over what the kernel noted in the events' rings, which are small: to be called at each drain.
    fn drain_notices(&mut self) {
        for armed in self.armed.values_mut() {
            self.retired.throttles += armed.event.drain_notices().throttles;
        }
    }

    fn amount(&self, fate: Fate) -> Amount {
        let (samples, weight) = self.tables.tally(fate);
        Amount { samples, weight }
    }

    fn lost(&self) -> impl Iterator<Item = (Lost, Amount)> {
        let causes = [
            (Lost::TableFull, Fate::TableFull),
            (Lost::FramesFull, Fate::FramesFull),
            (Lost::NoScratch, Fate::NoScratch),
        ];
        causes.into_iter().map(|(cause, fate)| (cause, self.amount(fate)))
    }

    fn arm(&mut self, cpu: CpuId) -> Result<(), KernelError> {
        let SamplerOptions { event: spec, rate, precise, .. } = &self.options;
        let mut event = match SamplingEvent::open(spec, *rate, cpu, *precise) {
            Ok(event) => event,
            // The CPU went offline since it was listed.
            Err(error) if error.errno() == libc::ENODEV && !cpus::online()?.contains(&cpu) => return Ok(()),
            Err(error) => return Err(Refusal::new(&error, &self.options.host).into()),
        };
        let program = self.programs.sample_program()?;
        let link = PerfLink::create(program, &event, 0)
            .map_err(KernelError::system("attaching the sample program"))?;
        if self.running {
            event.enable().map_err(KernelError::system("enabling a sampling event"))?;
        }
        self.armed.insert(cpu, Armed { _link: link, event });
        Ok(())
    }

    fn retire(&mut self, cpu: CpuId) {
        if let Some(mut armed) = self.armed.remove(&cpu) {
            self.retired.counted +=
                armed.event.read().map_or(0, |count| expected(&self.options.event, count));
            self.retired.throttles += armed.event.drain_notices().throttles;
        }
    }

    fn each_event(&mut self, act: impl Fn(&mut SamplingEvent) -> std::io::Result<()>) -> std::io::Result<()> {
        self.armed.values_mut().try_for_each(|armed| act(&mut armed.event))
    }
}

/// The weight that samples should have for what an event counted.
///
/// A clock does not count while the kernel throttles it, so its samples are held against the time it was enabled. What modifiers keep a
/// clock from sampling it counts all the same; then nothing can be said.
fn expected(event: &EventSpec, counted: Counted) -> u64 {
    let modifiers = event.modifiers();
    match event.is_clock() {
        true if modifiers.exclude_user() || modifiers.exclude_kernel() => 0,
        true => counted.enabled_ns,
        false => counted.scaled(),
    }
}

/// Bytes that the tables of all CPUs may take together.
const TABLES_BYTES: u64 = 256 << 20;

/// Tables that hold twice what comes between two drains, as far as the memory for all CPUs allows.
fn table_layout(rate: Rate, cpus: u32) -> TableLayout {
    let per_second = match rate {
        Rate::Frequency(hz) => hz.get(),
        // Unknown beforehand; equal stacks share a slot, so bursts of one breakpoint need few.
        Rate::Period(_) => 20_000,
    };
    let slots = (per_second / DRAINS_PER_SECOND * 2).clamp(1 << 10, 1 << 14).next_power_of_two();
    let one_stack = MAX_USER_FRAMES + MAX_KERNEL_FRAMES;
    let fair_share = u32::try_from(TABLES_BYTES / 16 / u64::from(cpus)).unwrap_or(u32::MAX);
    let frames = (slots * 64).min(fair_share).max(16 * one_stack);
    TableLayout { slots, frames }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn layout(hz: u32, cpus: u32) -> TableLayout {
        table_layout(Rate::Frequency(NonZeroU32::new(hz).unwrap()), cpus)
    }

    #[test]
    fn tables_grow_with_the_rate_and_stay_bounded() {
        assert_eq!(layout(997, 2), TableLayout { slots: 1024, frames: 65_536 });
        assert!(layout(20_000, 2).slots > layout(997, 2).slots);
        assert!(u64::from(layout(100_000, 512).frames) * 16 * 512 <= TABLES_BYTES);
        assert!(layout(1, 8192).frames >= MAX_USER_FRAMES + MAX_KERNEL_FRAMES);
    }

    #[test]
    fn every_delivery_is_accounted_for_once() {
        let amount = |n| Amount { samples: n, weight: 10 * n };
        let accounting = Accounting {
            kept: amount(1),
            not_target: amount(2),
            idle: amount(4),
            user_mode_left_out: amount(8),
            lost: vec![(Lost::TableFull, amount(16)), (Lost::FramesFull, amount(32))],
            ..Accounting::default()
        };
        assert_eq!(accounting.delivered(), 630);
        assert_eq!(accounting.lost_total(), amount(48));
    }
}
