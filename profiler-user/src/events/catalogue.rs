//! Every event that has a name on this machine.

use super::advice::Advice;
use super::cache;
use super::names::{HARDWARE, SOFTWARE};
use super::open_error::Failure;
use super::pmu::Pmu;
use super::pmu_event::PmuEvent;
use super::spec::{EventKind, EventSpec};
use super::system_root::SYSTEM_ROOT;
use super::tracepoint::Tracepoint;
use std::path::Path;

/// A PMU of this machine, with the events and terms that sysfs lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuEvents {
    /// Its name.
    pub pmu: String,
    /// Its terms, as in `PMU/term=value/`.
    pub terms: Vec<String>,
    /// Its events, each with the unit of its counts where sysfs says it.
    pub events: Vec<(EventSpec, Option<String>)>,
}

/// The generic events of the CPU's PMU.
pub fn hardware_events() -> impl Iterator<Item = EventSpec> {
    HARDWARE.iter().map(|named| EventKind::Hardware(named.event).into())
}

/// The generic cache events of the CPU's PMU.
pub fn cache_events() -> impl Iterator<Item = EventSpec> {
    cache::all().map(|event| EventKind::Cache(event).into())
}

/// The events that the kernel counts.
pub fn software_events() -> impl Iterator<Item = EventSpec> {
    SOFTWARE.iter().map(|named| EventKind::Software(named.event).into())
}

/// The PMUs of this machine, by name; empty where sysfs shows none.
pub fn pmus() -> Vec<PmuEvents> {
    pmus_below(Path::new(SYSTEM_ROOT))
}

/// The tracepoints of this kernel, by name.
///
/// # Errors
/// tracefs is not mounted, or not readable.
pub fn tracepoints() -> Result<Vec<EventSpec>, Failure> {
    let all = Tracepoint::all(Path::new(SYSTEM_ROOT)).map_err(|advice: Advice| Failure::from(advice))?;
    Ok(all.into_iter().map(|tracepoint| EventKind::Tracepoint(Box::new(tracepoint)).into()).collect())
}

fn pmus_below(root: &Path) -> Vec<PmuEvents> {
    let event = |pmu: &Pmu, name: &str| {
        let spec = EventKind::Pmu(Box::new(PmuEvent::named(pmu.name(), name))).into();
        (spec, pmu.unit(name))
    };
    let describe = |pmu: &Pmu| PmuEvents {
        pmu: pmu.name().to_owned(),
        terms: pmu.terms(),
        events: pmu.events().iter().map(|name| event(pmu, name)).collect(),
    };
    Pmu::all(root).unwrap_or_default().iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    #[test]
    fn events_of_sysfs_can_be_written_as_they_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("power/type", "19"),
            ("power/format/event", "config:0-7"),
            ("power/events/energy-pkg", "event=0x02"),
            ("power/events/energy-pkg.unit", "Joules\n"),
            ("software/type", "1"),
        ] {
            write(root.path(), &format!("/sys/bus/event_source/devices/{file}"), text);
        }
        let pmus = pmus_below(root.path());
        assert_eq!(pmus.iter().map(|pmu| pmu.pmu.as_str()).collect::<Vec<_>>(), ["power", "software"]);
        let energy: EventSpec = "power/energy-pkg/".parse().unwrap();
        assert_eq!(pmus[0].events, [(energy, Some("Joules".to_owned()))]);
        assert_eq!((pmus[0].terms.as_slice(), pmus[1].terms.len()), (&["event".to_owned()][..], 0));
    }

    #[test]
    fn generic_events_can_be_written_as_they_are_listed() {
        for spec in hardware_events().chain(cache_events()).chain(software_events()) {
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}
