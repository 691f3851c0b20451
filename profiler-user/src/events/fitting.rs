//! How many events a CPU can count at the same time.

use super::counted::Counted;
use super::counting::CountingEvent;
use super::cpus::CpuId;
use super::spec::EventSpec;
use std::io;
use std::thread::sleep;
use std::time::Duration;

/// How many of the events, from the front, one CPU counts all the time when they are opened together, found by letting them count for
/// some milliseconds. Events that do not open take no counter and do not matter.
///
/// Whatever else uses the PMU now has its part in the answer, as it will have in a recording: an event that is going to be sampled
/// belongs into the list.
///
/// # Errors
/// An event that is open can be neither enabled nor read.
pub fn fitting(specs: &[EventSpec], cpu: CpuId) -> io::Result<usize> {
    let mut fit = specs.len();
    while fit > 0 && does_any_wait(&specs[..fit], cpu)? {
        fit -= 1;
    }
    Ok(fit)
}

/// Some turns of the rotation in which events take the counters, each of 4 ms or a tick by default (`perf_event_mux_interval_ms`).
const TRIAL: Duration = Duration::from_millis(20);

/// Whether any of the events, opened together, has to wait for a counter.
fn does_any_wait(specs: &[EventSpec], cpu: CpuId) -> io::Result<bool> {
    let mut events: Vec<CountingEvent> =
        specs.iter().filter_map(|spec| CountingEvent::open(spec, cpu).ok()).collect();
    events.iter_mut().try_for_each(CountingEvent::enable)?;
    // They are counted on the CPU whatever it does, so this thread need not be busy, nor be there.
    sleep(TRIAL);
    events.iter_mut().try_for_each(CountingEvent::disable)?;
    for event in &mut events {
        if has_waited(event.read()?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an event lacked a counter for more than the moments in which others were opened and closed: a turn of the rotation is
/// more than a twentieth of the trial.
fn has_waited(counted: Counted) -> bool {
    counted.running_ns < counted.enabled_ns - counted.enabled_ns / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_kernel_never_wait() {
        let specs: Vec<EventSpec> = ["cpu-clock", "page-faults", "context-switches", "cycles"]
            .map(|event| event.parse().unwrap())
            .into();
        assert_eq!(fitting(&specs, CpuId(0)).unwrap(), specs.len());
        assert_eq!(fitting(&[], CpuId(0)).unwrap(), 0);
    }

    #[test]
    fn more_events_than_counters_do_not_fit() {
        // Fewer counters than this are in every CPU; without any, none opens.
        let specs = vec![EventSpec::cycles(); 64];
        let fit = fitting(&specs, CpuId(0)).unwrap();
        if CountingEvent::open(&specs[0], CpuId(0)).is_ok() {
            assert!((1..64).contains(&fit), "{fit}");
        } else {
            assert_eq!(fit, 64);
        }
    }

    #[test]
    fn a_turn_without_a_counter_is_waiting() {
        let waited = |running_ns| has_waited(Counted { value: 1, enabled_ns: 20_000_000, running_ns });
        assert_eq!([20_000_000, 19_500_000].map(waited), [false, false]);
        assert_eq!([16_000_000, 0].map(waited), [true, true]);
        assert!(!has_waited(Counted::default()));
    }
}
