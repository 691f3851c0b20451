//! One event opened on one CPU.

use super::cpus::CpuId;
use super::precise::Precise;
use super::rate::Rate;
use super::spec::{EventKind, EventSpec};
use perf_event::data::Record;
use perf_event::events::Raw;
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag, Sampler};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::{fmt, io};

/// One event, sampled in all processes that run on one CPU.
///
/// The samples themselves go to the BPF program attached to the descriptor. Without one they fill the ring,
/// and count as lost there. Dropping the value closes the event.
pub struct SamplingEvent {
    sampler: Sampler,
    cpu: CpuId,
}

/// What an event has counted so far, samples or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The count, in units of the event, while it ran.
    pub value: u64,
    /// How long the event was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// How long it really ran: less than `enabled_ns` when the kernel shares counters among too many events.
    pub running_ns: u64,
}

/// What the kernel noted in an event's ring since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// How often the kernel stopped the event until the next tick, because it was raised too often.
    pub throttles: u64,
    /// Records that found no room in the ring.
    pub lost_records: u64,
    /// Samples that the hardware dropped before the kernel saw them.
    pub lost_samples: u64,
}

/// Why an event could not be opened on a CPU: what was asked, and the kernel's answer.
///
/// [`Refusal`](super::Refusal) makes a cause and a remedy of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {step} `{event}` on CPU {cpu}: {}", io::Error::from_raw_os_error(*errno))]
pub struct OpenError {
    /// The event.
    pub event: EventSpec,
    /// The rate that was asked for.
    pub rate: Rate,
    /// The CPU.
    pub cpu: CpuId,
    /// The precise level that was asked for.
    pub precise: Precise,
    /// What failed.
    pub step: OpenStep,
    /// The kernel's errno as it is; `ENODEV` when the CPU is offline.
    pub errno: i32,
}

/// A step of opening an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenStep {
    /// perf_event_open(2).
    Open,
    /// mmap(2) of the ring for notices.
    MapRing,
}

impl SamplingEvent {
    /// Opens the event on one CPU for all processes, disabled, at exactly this precise level.
    ///
    /// Guests of virtual machines are left out unless a modifier names them, but counted where the kernel
    /// cannot tell them apart.
    ///
    /// # Errors
    /// The kernel refuses the event or its ring.
    pub fn open(spec: &EventSpec, rate: Rate, cpu: CpuId, precise: Precise) -> Result<Self, OpenError> {
        let error = |step, errno| OpenError { event: spec.clone(), rate, cpu, precise, step, errno };
        let mut builder = builder(spec, rate, cpu, precise);
        let counter = build(&mut builder, spec).map_err(|errno| error(OpenStep::Open, errno))?;
        let sampler =
            counter.sampled(SMALLEST_RING).map_err(|failure| error(OpenStep::MapRing, errno(&failure)))?;
        Ok(Self { sampler, cpu })
    }

    /// Starts counting and sampling.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()
    }

    /// Stops counting and sampling; the count stays.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn disable(&mut self) -> io::Result<()> {
        self.sampler.disable()
    }

    /// What the event has counted since it was opened.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn read(&mut self) -> io::Result<Counted> {
        let counted = self.sampler.read_count_and_time()?;
        Ok(Counted {
            value: counted.count,
            enabled_ns: counted.time_enabled,
            running_ns: counted.time_running,
        })
    }

    /// Takes the notices out of the ring. They are lost when the ring is full, so look a few times a second.
    pub fn drain_notices(&mut self) -> Notices {
        let mut notices = Notices::default();
        for _ in 0..MOST_RECORDS {
            let Some(record) = self.sampler.next_record() else { break };
            if let Ok(record) = record.parse_record() {
                notices.add(&record);
            }
        }
        notices
    }

    /// The CPU it is opened on.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl AsRawFd for SamplingEvent {
    fn as_raw_fd(&self) -> RawFd {
        self.sampler.as_raw_fd()
    }
}

impl AsFd for SamplingEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the sampler owns the descriptor and keeps it open for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) }
    }
}

impl fmt::Debug for SamplingEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplingEvent").field("cpu", &self.cpu).field("fd", &self.as_raw_fd()).finish()
    }
}

impl Counted {
    /// The count for all the time the event was enabled, extrapolated when it ran for a part of it; 0 if it
    /// never ran.
    pub fn scaled(self) -> u64 {
        let value = u128::from(self.value) * u128::from(self.enabled_ns);
        match value.checked_div(u128::from(self.running_ns)) {
            Some(scaled) => u64::try_from(scaled).unwrap_or(u64::MAX),
            None => 0,
        }
    }
}

impl Notices {
    fn add(&mut self, record: &Record<'_>) {
        match record {
            Record::Throttle(_) => self.throttles += 1,
            Record::Lost(lost) => self.lost_records = self.lost_records.saturating_add(lost.lost),
            Record::LostSamples(lost) => self.lost_samples = self.lost_samples.saturating_add(lost.lost),
            _ => {}
        }
    }
}

impl std::ops::AddAssign for Notices {
    fn add_assign(&mut self, other: Self) {
        self.throttles = self.throttles.saturating_add(other.throttles);
        self.lost_records = self.lost_records.saturating_add(other.lost_records);
        self.lost_samples = self.lost_samples.saturating_add(other.lost_samples);
    }
}

impl fmt::Display for OpenStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::MapRing => "map the ring of",
        })
    }
}

/// Rounded up to one page of data behind the control page.
const SMALLEST_RING: usize = 1;

/// More records than a ring of the largest page size (64 KiB) holds, so that a busy event cannot keep the
/// reader for ever.
const MOST_RECORDS: usize = 8192;

/// No `PERF_SAMPLE_PERIOD`: with it the kernel samples *every* software event and ignores a fixed period.
fn builder(spec: &EventSpec, rate: Rate, cpu: CpuId, precise: Precise) -> Builder<'static> {
    let modifiers = spec.modifiers();
    let mut builder = match spec.kind() {
        EventKind::Hardware(event) => Builder::new(*event),
        EventKind::Cache(event) => Builder::new(event.clone()),
        EventKind::Raw(config) => Builder::new(Raw::new(*config)),
        EventKind::Software(event) => Builder::new(*event),
        EventKind::Breakpoint(breakpoint) => Builder::new(*breakpoint),
    };
    builder
        .any_pid()
        .one_cpu(cpu.0 as usize)
        .enabled(false)
        .inherit(false)
        .exclude_user(modifiers.exclude_user())
        .exclude_kernel(modifiers.exclude_kernel())
        .exclude_hv(modifiers.exclude_hypervisor())
        .exclude_guest(modifiers.exclude_guest())
        .exclude_host(modifiers.exclude_host())
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .clockid(Clock::MONOTONIC);
    match rate {
        Rate::Frequency(hertz) => builder.sample_frequency(u64::from(hertz.get())),
        Rate::Period(period) => builder.sample_period(period.get()),
    };
    if precise != Precise::ARBITRARY_SKID {
        builder.attrs_mut().set_precise_ip(u64::from(precise.level()));
        // Else attaching a program that calls bpf_get_stack() fails with EPROTO (kernel/events/core.c).
        builder.sample(SampleFlag::CALLCHAIN);
    }
    builder
}

/// Opens the event; where the kernel cannot tell guests apart and no modifier asks it to, with guests.
fn build(builder: &mut Builder<'_>, spec: &EventSpec) -> Result<Counter, i32> {
    let refused = match builder.build() {
        Ok(counter) => return Ok(counter),
        Err(error) => errno(&error),
    };
    if refused != libc::EINVAL || spec.modifiers().names_guest_or_host() {
        return Err(refused);
    }
    builder.exclude_guest(false).build().map_err(|_| refused)
}

/// perf-event2 turns `E2BIG`, and only that, into an error without errno.
fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::E2BIG)
}

#[cfg(test)]
mod tests {
    use super::super::cpus;
    use super::*;
    use std::hint::black_box;
    use std::num::NonZeroU64;

    fn open_everywhere(spec: &EventSpec, rate: Rate) -> Vec<SamplingEvent> {
        let online = cpus::online().unwrap();
        online
            .into_iter()
            .map(|cpu| SamplingEvent::open(spec, rate, cpu, Precise::ARBITRARY_SKID).unwrap())
            .collect()
    }

    fn total(events: &mut [SamplingEvent]) -> u64 {
        events.iter_mut().map(|event| event.read().unwrap().value).sum()
    }

    #[inline(never)]
    extern "C" fn watched(number: u64) -> u64 {
        black_box(number) ^ 0x5eed
    }

    #[test]
    fn a_breakpoint_counts_every_execution() {
        let spec: EventSpec = format!("mem:{:#x}:x:u", watched as *const () as usize).parse().unwrap();
        let mut events = open_everywhere(&spec, Rate::Period(NonZeroU64::new(1000).unwrap()));
        watched(black_box(1));
        assert_eq!(total(&mut events), 0, "opened enabled");
        events.iter_mut().for_each(|event| event.enable().unwrap());
        for number in 0..1234 {
            black_box(watched(black_box(number)));
        }
        events.iter_mut().for_each(|event| event.disable().unwrap());
        watched(black_box(1));
        assert_eq!(total(&mut events), 1234);
    }

    #[test]
    fn a_clock_counts_nanoseconds_while_enabled() {
        for spec in [EventSpec::cpu_clock(), "task-clock".parse().unwrap()] {
            let cpu = cpus::online().unwrap().into_iter().next().unwrap();
            let mut event =
                SamplingEvent::open(&spec, spec.default_rate(), cpu, Precise::ARBITRARY_SKID).unwrap();
            assert_eq!((event.cpu(), event.as_fd().as_raw_fd()), (cpu, event.as_raw_fd()));
            assert_eq!(event.read().unwrap(), Counted::default());
            event.enable().unwrap();
            while event.read().unwrap().value < 1_000_000 {
                std::thread::yield_now();
            }
            event.disable().unwrap();
            let counted = event.read().unwrap();
            assert_eq!(counted.enabled_ns, counted.running_ns);
            // The two are read one after the other, by different clocks.
            assert!(counted.value.abs_diff(counted.enabled_ns) < counted.enabled_ns / 2, "{counted:?}");
        }
    }

    #[test]
    fn notices_tell_of_samples_that_could_not_be_kept() {
        const PAGES: usize = 20_000;
        let mut events = open_everywhere(&"page-faults".parse().unwrap(), Rate::EVERY);
        events.iter_mut().for_each(|event| event.enable().unwrap());
        let mut notices = Notices::default();
        for _ in 0..2 {
            let mut map = memmap2::MmapMut::map_anon(PAGES * 4096).unwrap();
            map.advise(memmap2::Advice::NoHugePage).unwrap();
            map.chunks_mut(4096).for_each(|page| page[0] = 1);
            events.iter_mut().for_each(|event| notices += event.drain_notices());
        }
        assert!(total(&mut events) >= PAGES as u64);
        assert!(notices.throttles > 0 || notices.lost_records > 0, "{notices:?}");
    }

    #[test]
    fn errno_of_the_kernel_is_kept() {
        let spec = EventSpec::cpu_clock();
        let absent = CpuId(cpus::possible().unwrap().last().unwrap().0 + 1);
        let error =
            SamplingEvent::open(&spec, spec.default_rate(), absent, Precise::ARBITRARY_SKID).unwrap_err();
        assert_eq!((error.errno, error.step), (libc::EINVAL, OpenStep::Open));
        assert!(error.to_string().contains(&format!("cannot open `cpu-clock` on CPU {absent}")), "{error}");
    }

    #[test]
    fn scaled_counts_never_divide_by_zero() {
        let counted = |value, enabled_ns, running_ns| Counted { value, enabled_ns, running_ns }.scaled();
        assert_eq!(counted(10, 100, 100), 10);
        assert_eq!(counted(10, 100, 50), 20);
        assert_eq!(counted(0, 100, 0), 0);
        assert_eq!(counted(10, 100, 0), 0);
        assert_eq!(counted(u64::MAX, u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn the_attribute_says_what_was_asked() {
        let attribute = |event: &str, precise: u8| {
            let spec: EventSpec = event.parse().unwrap();
            let precise = Precise::new(precise).unwrap();
            *builder(&spec, spec.default_rate(), CpuId(0), precise).attrs()
        };
        let attr = attribute("cycles:u", 2);
        assert_eq!((attr.disabled(), attr.inherit(), attr.freq(), attr.precise_ip()), (1, 0, 1, 2));
        assert_eq!((attr.exclude_user(), attr.exclude_kernel(), attr.exclude_hv()), (0, 1, 1));
        assert_eq!((attr.exclude_guest(), attr.exclude_host()), (1, 0));
        assert_eq!((attr.use_clockid(), attr.clockid), (1, libc::CLOCK_MONOTONIC));
        assert_eq!(attr.sample_type, SampleFlag::CALLCHAIN.bits());
        let attr = attribute("page-faults", 0);
        assert_eq!((attr.exclude_user(), attr.exclude_kernel(), attr.exclude_hv()), (0, 0, 0));
        assert_eq!(attr.sample_type, 0);
    }
}
