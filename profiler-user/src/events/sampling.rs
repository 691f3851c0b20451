//! One event opened on one CPU for sampling.

use super::advice::Advice;
use super::attribute;
use super::counted::Counted;
use super::cpus::CpuId;
use super::open_error::{Failure, OpenError, Purpose};
use super::precise::Precise;
use super::rate::Rate;
use super::spec::EventSpec;
use perf_event::data::Record;
use perf_event::{Builder, SampleFlag, Sampler};
use perf_event_open_sys::ioctls;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::{fmt, io};

/// One event, sampled in all processes that run on one CPU.
///
/// The samples themselves go to the BPF program attached to the descriptor. Without one they fill the ring,
/// and count as lost there. Dropping the value closes the event.
pub struct SamplingEvent {
    sampler: Sampler,
    cpu: CpuId,
    is_clock: bool,
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

impl SamplingEvent {
    /// Opens the event on one CPU for all processes, disabled, at exactly this precise level.
    ///
    /// Guests of virtual machines are left out unless a modifier names them, but counted where the kernel
    /// cannot tell them apart.
    ///
    /// # Errors
    /// The kernel refuses the event or its ring.
    pub fn open(spec: &EventSpec, rate: Rate, cpu: CpuId, precise: Precise) -> Result<Self, OpenError> {
        let purpose = Purpose::Sample { rate, precise };
        let error = |failure| OpenError { event: spec.clone(), cpu, purpose, failure };
        let mut builder = builder(spec, rate, cpu, precise).map_err(|advice| error(advice.into()))?;
        let counter = attribute::open(&mut builder, spec).map_err(error)?;
        let sampler = counter
            .sampled(SMALLEST_RING)
            .map_err(|refused| error(Failure::MapRing { errno: attribute::errno(&refused) }))?;
        Ok(Self { sampler, cpu, is_clock: spec.is_clock() })
    }

    /// Gives an event that was opened with this frequency another period, drawn by chance from those around it. It begins now: what was counted
    /// of the one before ends in no sample of its own.
    ///
    /// The kernel has turned the frequency of a clock into a fixed period when it opened the clock (`perf_swevent_init_hrtimer` in
    /// `kernel/events/core.c`). Of the PMU's events it goes on adapting the period to the frequency (`perf_adjust_period`).
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn draw_period(&mut self, frequency: NonZeroU32) -> io::Result<()> {
        const SECOND: f64 = 1e9;
        let factor = 1.0 - PERIOD_SPREAD + 2.0 * PERIOD_SPREAD * fastrand::f64();
        let hertz = f64::from(frequency.get());
        if self.is_clock {
            return self.set_period((SECOND / hertz * factor) as u64);
        }
        match self.set_period((hertz * factor).round().max(1.0) as u64) {
            // Above the highest frequency that the kernel allows.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && factor > 1.0 => {
                self.set_period((hertz / factor).round().max(1.0) as u64)
            }
            result => result,
        }
    }

    /// Sets the period of an event that has one, and the frequency of one whose period the kernel adapts.
    fn set_period(&mut self, value: u64) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the kernel reads the number at this address.
        let result = unsafe { ioctls::PERIOD(self.as_raw_fd(), &raw const value as u64) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        self.sampler.read_count_and_time().map(Counted::from)
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

/// Random periods lie so far around the one asked for, at most.
const PERIOD_SPREAD: f64 = 0.1;

/// Rounded up to one page of data behind the control page.
const SMALLEST_RING: usize = 1;

/// More records than a ring of the largest page size (64 KiB) holds, so that a busy event cannot keep the
/// reader for ever.
const MOST_RECORDS: usize = 8192;

/// No `PERF_SAMPLE_PERIOD`: with it the kernel samples *every* software event and ignores a fixed period.
fn builder(spec: &EventSpec, rate: Rate, cpu: CpuId, precise: Precise) -> Result<Builder<'static>, Advice> {
    let mut builder = attribute::builder(spec, cpu)?;
    match rate {
        Rate::Frequency(hertz) => builder.sample_frequency(u64::from(hertz.get())),
        Rate::Period(period) => builder.sample_period(period.get()),
    };
    if precise != Precise::ARBITRARY_SKID {
        builder.attrs_mut().set_precise_ip(u64::from(precise.level()));
        // Else attaching a program that calls bpf_get_stack() fails with EPROTO (kernel/events/core.c).
        builder.sample(SampleFlag::CALLCHAIN);
    }
    Ok(builder)
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
        assert_eq!(error.failure, Failure::Open { errno: libc::EINVAL });
        assert!(
            error
                .to_string()
                .contains(&format!("cannot sample `cpu-clock` on CPU {absent}: perf_event_open")),
            "{error}"
        );
    }

    #[test]
    fn the_attribute_says_what_was_asked() {
        let attribute = |event: &str, precise: u8| {
            let spec: EventSpec = event.parse().unwrap();
            let precise = Precise::new(precise).unwrap();
            *builder(&spec, spec.default_rate(), CpuId(0), precise).unwrap().attrs()
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
