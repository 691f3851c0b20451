//! One event opened on one CPU for counting alone.

use super::attribute;
use super::counted::Counted;
use super::cpus::CpuId;
use super::open_error::{OpenError, Purpose};
use super::spec::EventSpec;
use perf_event::Counter;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::{fmt, io};

/// One event, counted in all processes that run on one CPU, without any interrupt.
///
/// Its descriptor can be put into a BPF perf event array, so that programs on that CPU read it. Dropping the value closes the event.
pub struct CountingEvent {
    counter: Counter,
    cpu: CpuId,
}

impl CountingEvent {
    /// Opens the event on one CPU for all processes, disabled. The precise level of its modifiers is not asked for.
    ///
    /// Guests of virtual machines are left out unless a modifier names them, but counted where the kernel
    /// cannot tell them apart.
    ///
    /// # Errors
    /// The kernel refuses the event.
    pub fn open(spec: &EventSpec, cpu: CpuId) -> Result<Self, OpenError> {
        let error = |failure| OpenError { event: spec.clone(), cpu, purpose: Purpose::Count, failure };
        let mut builder = attribute::builder(spec, cpu).map_err(|advice| error(advice.into()))?;
        let counter = attribute::open(&mut builder, spec).map_err(error)?;
        Ok(Self { counter, cpu })
    }

    /// Starts counting.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn enable(&mut self) -> io::Result<()> {
        self.counter.enable()
    }

    /// Stops counting; the count stays.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn disable(&mut self) -> io::Result<()> {
        self.counter.disable()
    }

    /// What the event has counted since it was opened.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn read(&mut self) -> io::Result<Counted> {
        self.counter.read_count_and_time().map(Counted::from)
    }

    /// The CPU it is opened on.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl AsFd for CountingEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the counter owns the descriptor and keeps it open for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.counter.as_raw_fd()) }
    }
}

impl fmt::Debug for CountingEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingEvent")
            .field("cpu", &self.cpu)
            .field("fd", &self.counter.as_raw_fd())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpus;
    use super::super::open_error::Failure;
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    extern "C" fn watched(number: u64) -> u64 {
        black_box(number) ^ 0xc0de
    }

    #[test]
    fn only_what_happens_while_enabled_is_counted() {
        let spec: EventSpec = format!("mem:{:#x}:x:u", watched as *const () as usize).parse().unwrap();
        let cpus = cpus::online().unwrap();
        let mut events: Vec<CountingEvent> =
            cpus.iter().map(|&cpu| CountingEvent::open(&spec, cpu).unwrap()).collect();
        assert!(events.iter().map(CountingEvent::cpu).eq(cpus));
        let run = |turns: u64| {
            (0..turns).for_each(|turn| {
                black_box(watched(black_box(turn)));
            });
        };
        run(1);
        events.iter_mut().for_each(|event| event.enable().unwrap());
        run(4321);
        events.iter_mut().for_each(|event| event.disable().unwrap());
        run(1);
        let counts: Vec<Counted> = events.iter_mut().map(|event| event.read().unwrap()).collect();
        assert_eq!(counts.iter().map(|count| count.value).sum::<u64>(), 4321);
        assert!(counts.iter().all(|count| count.enabled_ns > 0 && count.running_ns == count.enabled_ns));
    }

    #[test]
    fn a_refusal_says_that_it_was_to_be_counted() {
        let absent = CpuId(cpus::possible().unwrap().last().unwrap().0 + 1);
        let error = CountingEvent::open(&EventSpec::cpu_clock(), absent).unwrap_err();
        assert_eq!(
            (error.purpose, error.failure.clone()),
            (Purpose::Count, Failure::Open { errno: libc::EINVAL })
        );
        assert!(
            error.to_string().starts_with(&format!("cannot count `cpu-clock` on CPU {absent}: ")),
            "{error}"
        );
    }

    #[test]
    fn the_attribute_does_not_sample() {
        let attr = *attribute::builder(&"page-faults:u".parse().unwrap(), CpuId(0)).unwrap().attrs();
        assert_eq!((attr.disabled(), attr.inherit(), attr.freq(), attr.precise_ip()), (1, 0, 0, 0));
        // SAFETY: every bit pattern is a number.
        assert_eq!(unsafe { attr.__bindgen_anon_1.sample_period }, 0);
    }
}
