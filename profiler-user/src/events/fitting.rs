//! Which events a CPU can count at the same time.

use super::counted::Counted;
use super::counting::CountingEvent;
use super::cpus::CpuId;
use super::spec::{EventKind, EventSpec};
use std::io;
use std::thread::sleep;
use std::time::Duration;

/// For each event, whether one CPU counts it all the time when it is opened together with those before it that do, found by letting them
/// count for some milliseconds. Events of the kernel's own take no counter, and neither do events that do not open.
///
/// Whatever else uses the PMU now has its part in the answer, as it will have in a recording: an event that is going to be sampled
/// belongs into the list.
///
/// # Errors
/// An event that is open can be neither enabled nor read.
pub fn fitting(specs: &[EventSpec], cpu: CpuId) -> io::Result<Vec<bool>> {
    let (takers, of_pmu): (Vec<usize>, Vec<EventSpec>) =
        specs.iter().cloned().enumerate().filter(|(_, spec)| takes_a_counter(spec)).unzip();
    let mut fit = of_pmu.len();
    while fit > 0 && does_any_wait(&of_pmu[..fit], cpu)? {
        fit -= 1;
    }
    let mut fits = vec![true; specs.len()];
    takers[fit..].iter().for_each(|&index| fits[index] = false);
    Ok(fits)
}

fn takes_a_counter(spec: &EventSpec) -> bool {
    !matches!(spec.kind(), EventKind::Software(_) | EventKind::Breakpoint(_) | EventKind::Tracepoint(_))
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
        assert_eq!(fitting(&specs, CpuId(0)).unwrap(), vec![true; specs.len()]);
        assert!(fitting(&[], CpuId(0)).unwrap().is_empty());
    }

    #[test]
    fn more_events_than_counters_do_not_fit() {
        // Fewer counters than this are in every CPU; without any, none opens. What takes none fits wherever it stands.
        let mut specs = vec![EventSpec::cycles(); 64];
        specs.push(EventSpec::cpu_clock());
        let fits = fitting(&specs, CpuId(0)).unwrap();
        let fit = fits.iter().take_while(|&&fits| fits).count();
        if CountingEvent::open(&specs[0], CpuId(0)).is_ok() {
            assert!((1..64).contains(&fit), "{fits:?}");
        } else {
            assert_eq!(fit, 65);
        }
        assert_eq!(fits.last(), Some(&true));
    }

    #[test]
    fn a_turn_without_a_counter_is_waiting() {
        let waited = |running_ns| has_waited(Counted { value: 1, enabled_ns: 20_000_000, running_ns });
        assert_eq!([20_000_000, 19_500_000].map(waited), [false, false]);
        assert_eq!([16_000_000, 0].map(waited), [true, true]);
        assert!(!has_waited(Counted::default()));
    }
}
