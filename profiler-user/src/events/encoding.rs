//! From a spec to what the kernel calls the event on one CPU: type and configuration words.
//!
//! PMUs and tracepoints differ from machine to machine, so they are looked up when an event is opened, not when it is read.

use super::advice::{Advice, advice};
use super::cache;
use super::cpus::CpuId;
use super::names::{HARDWARE, by_name};
use super::pmu::{Pmu, some_of};
use super::pmu_event::{PmuEvent, Term, Value, parse_terms};
use super::pmu_format::{Configs, Format};
use super::spec::{EventKind, EventSpec};
use crate::suggest;
use perf_event::Builder;
use perf_event::events::{Event, Raw, Tracepoint};
use perf_event_open_sys::bindings::perf_event_attr;
use std::collections::BTreeSet;
use std::path::Path;

/// The builder of the event's attribute, with nothing set but what is counted.
pub(super) fn builder(root: &Path, spec: &EventSpec, cpu: CpuId) -> Result<Builder<'static>, Advice> {
    match spec.kind() {
        EventKind::Hardware(event) => of_core_type(Builder::new(*event), root, cpu),
        EventKind::Cache(event) => of_core_type(Builder::new(event.clone()), root, cpu),
        EventKind::Raw(config) => match Pmu::of_core_type(root, cpu) {
            Some(pmu) => {
                Ok(Builder::new(Encoding { pmu: pmu.number()?, configs: Configs([*config, 0, 0, 0]) }))
            }
            None => Ok(Builder::new(Raw::new(*config))),
        },
        EventKind::Software(event) => Ok(Builder::new(*event)),
        EventKind::Breakpoint(breakpoint) => Ok(Builder::new(*breakpoint)),
        EventKind::Pmu(event) => of_pmu(root, event, cpu),
        EventKind::Tracepoint(tracepoint) => Ok(Builder::new(Tracepoint::with_id(tracepoint.id(root)?))),
    }
}

/// What the kernel calls an event of a PMU.
struct Encoding {
    pmu: u32,
    configs: Configs,
}

impl Event for Encoding {
    fn update_attrs(self, attr: &mut perf_event_attr) {
        attr.type_ = self.pmu;
        [attr.config, attr.config1, attr.config2, attr.config3] = self.configs.0;
    }
}

/// `PERF_PMU_TYPE_SHIFT`: the upper half of a generic event's configuration names the PMU (since Linux 5.13).
const PMU_SHIFT: u32 = 32;

/// Names the PMU of the CPU's type of core where there are several.
fn of_core_type(mut generic: Builder<'static>, root: &Path, cpu: CpuId) -> Result<Builder<'static>, Advice> {
    if let Some(pmu) = Pmu::of_core_type(root, cpu) {
        generic.attrs_mut().config |= u64::from(pmu.number()?) << PMU_SHIFT;
    }
    Ok(generic)
}

fn of_pmu(root: &Path, event: &PmuEvent, cpu: CpuId) -> Result<Builder<'static>, Advice> {
    let pmu = Pmu::find(root, event.pmu())?;
    if let Some(cpus) = pmu.cpus()
        && !cpus.contains(&cpu)
    {
        return Err(advice(
            format!("PMU `{}` does not count on CPU {cpu}", pmu.name()),
            format!("sample on its CPUs with -C {}", list(&cpus)),
        ));
    }
    if let Some(name) = event.only_name()
        && pmu.is_core()
        && pmu.event(name)?.is_none()
        && pmu.format(name)?.is_none()
        && let Some(generic) = generic(name)
    {
        return of_core_type(generic, root, cpu);
    }
    let mut configs = Configs::default();
    for term in &event.terms {
        apply(&pmu, event, term, &mut configs)?;
    }
    Ok(Builder::new(Encoding { pmu: pmu.number()?, configs }))
}

/// The CPUs in the form that `-C` takes.
fn list(cpus: &BTreeSet<CpuId>) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The generic event of a name, which a core's PMU has even where sysfs does not list it.
fn generic(name: &str) -> Option<Builder<'static>> {
    match by_name(HARDWARE, name) {
        Some(named) => Some(Builder::new(named.event)),
        None => cache::parse(name)?.ok().map(Builder::new),
    }
}

/// Sets the bits of a term as the user wrote it: of the terms that an event stands for, or of the term itself.
fn apply(pmu: &Pmu, event: &PmuEvent, term: &Term, configs: &mut Configs) -> Result<(), Advice> {
    if term.value == Value::Implied
        && let Some(text) = pmu.event(&term.name)?
    {
        let unknown_form = || pmu.not_understood(&format!("events/{}", term.name));
        for inner in parse_terms(&text).ok_or_else(unknown_form)? {
            let given = event.terms.iter().any(|given| given.name == inner.name);
            match inner.value {
                Value::Wanted if !given => return Err(parameter_wanted(pmu, &term.name, &inner.name)),
                Value::Wanted => {}
                Value::Implied | Value::Number(_) => put(pmu, &inner, configs)?,
            }
        }
        return Ok(());
    }
    put(pmu, term, configs)
}

fn put(pmu: &Pmu, term: &Term, configs: &mut Configs) -> Result<(), Advice> {
    let format = match pmu.format(&term.name)? {
        Some(format) => format,
        None => Format::of_word(&term.name).ok_or_else(|| unknown_term(pmu, &term.name))?,
    };
    let value = match term.value {
        Value::Number(value) => value,
        Value::Implied | Value::Wanted => 1,
    };
    format.put(value, configs).ok_or_else(|| {
        advice(
            format!("the value {value:#x} of `{}` has more than {} bits", term.name, format.width()),
            "use a smaller one",
        )
    })
}

fn parameter_wanted(pmu: &Pmu, event: &str, parameter: &str) -> Advice {
    advice(
        format!("the event `{event}` of PMU `{}` needs a value for `{parameter}`", pmu.name()),
        format!("write {}/{event},{parameter}=…/", pmu.name()),
    )
}

fn unknown_term(pmu: &Pmu, name: &str) -> Advice {
    let (terms, events) = (pmu.terms(), pmu.events());
    let nearest = suggest::nearest(name, terms.iter().chain(&events).cloned());
    let known = |kind: &str, names: &[String]| match names {
        [] => format!("it has no {kind}"),
        names => format!("its {kind} are {}", some_of(names)),
    };
    let remedy = if nearest.is_empty() {
        format!("{}, {}", known("terms", &terms), known("events", &events))
    } else {
        format!("use {}; {}", nearest.join(" or "), known("terms", &terms))
    };
    advice(format!("PMU `{}` has neither a term nor an event `{name}`", pmu.name()), remedy)
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    /// The PMUs of a hybrid machine, and one that counts for each package.
    fn hybrid() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("cpu_core/type", "4\n"),
            ("cpu_core/cpus", "0-3\n"),
            ("cpu_core/format/event", "config:0-7\n"),
            ("cpu_core/format/umask", "config:8-15\n"),
            ("cpu_core/format/inv", "config:23\n"),
            ("cpu_core/format/ldlat", "config1:0-15\n"),
            ("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu_core/events/slots", "event=0x00,umask=0x4"),
            ("cpu_core/events/for-one-core", "event=0x07,umask=?"),
            ("cpu_atom/type", "10\n"),
            ("cpu_atom/cpus", "4-7\n"),
            ("cpu_atom/format/event", "config:0-7\n"),
            ("uncore_imc/type", "23\n"),
            ("uncore_imc/cpumask", "0\n"),
            ("uncore_imc/format/event", "config:0-7\n"),
        ] {
            write(root.path(), &format!("/sys/bus/event_source/devices/{file}"), text);
        }
        root
    }

    fn attribute(root: &Path, event: &str, cpu: u32) -> Result<(u32, u64, u64), String> {
        let spec: EventSpec = event.parse().unwrap_or_else(|error| panic!("{error}"));
        match builder(root, &spec, CpuId(cpu)) {
            Ok(builder) => {
                let attr = builder.attrs();
                Ok((attr.type_, attr.config, attr.config1))
            }
            Err(Advice { cause, remedy }) => Err(format!("{cause}; {remedy}")),
        }
    }

    #[test]
    fn generic_events_are_opened_on_the_pmu_of_their_cpu() {
        let root = hybrid();
        let on = |event: &str, cpu| attribute(root.path(), event, cpu).unwrap();
        // PERF_TYPE_HARDWARE is 0, PERF_TYPE_HW_CACHE 3, PERF_TYPE_SOFTWARE 1.
        assert_eq!(on("instructions", 0), (0, 4 << 32 | 1, 0));
        assert_eq!(on("instructions", 7), (0, 10 << 32 | 1, 0));
        assert_eq!(on("LLC-load-misses", 5), (3, 10 << 32 | 0x10002, 0));
        assert_eq!(on("r01c4", 0), (4, 0x1c4, 0));
        assert_eq!(on("r01c4", 4), (10, 0x1c4, 0));
        assert_eq!(on("page-faults", 4), (1, 2, 0));
        let uniform = tempfile::tempdir().unwrap();
        assert_eq!(attribute(uniform.path(), "instructions", 0), Ok((0, 1, 0)));
        assert_eq!(attribute(uniform.path(), "r01c4", 0), Ok((4, 0x1c4, 0)));
    }

    #[test]
    fn a_named_type_of_core_is_counted_there_alone() {
        let root = hybrid();
        assert_eq!(attribute(root.path(), "cpu_atom/cycles/", 4), Ok((0, 10 << 32, 0)));
        assert_eq!(attribute(root.path(), "cpu_core/LLC-loads/u", 1), Ok((3, 4 << 32 | 2, 0)));
        let refused = attribute(root.path(), "cpu_atom/cycles/", 1).unwrap_err();
        assert_eq!(refused, "PMU `cpu_atom` does not count on CPU 1; sample on its CPUs with -C 4,5,6,7");
    }

    #[test]
    fn terms_and_events_of_sysfs() {
        let root = hybrid();
        for (event, expected) in [
            ("cpu_core/event=0xd1,umask=0x20/", (4, 0x20d1, 0)),
            ("cpu_core/event=0xd1,inv/", (4, 1 << 23 | 0xd1, 0)),
            ("cpu_core/mem-loads/", (4, 0x1cd, 3)),
            ("cpu_core/mem-loads,ldlat=30/", (4, 0x1cd, 30)),
            ("cpu_core/slots/", (4, 0x400, 0)),
            ("cpu_core/for-one-core,umask=0x8/", (4, 0x807, 0)),
            ("cpu_core/umask=0x8,for-one-core/", (4, 0x807, 0)),
            ("cpu_core/config=0x123456789,config1=0x7/", (4, 0x1_2345_6789, 7)),
            ("cpu_core/config=0xffff,umask=0,name=x,period=9/", (4, 0xff, 0)),
        ] {
            assert_eq!(attribute(root.path(), event, 0), Ok(expected), "{event}");
        }
    }

    #[test]
    fn what_a_pmu_does_not_have_is_named_with_what_it_has() {
        let root = hybrid();
        let refused = |event: &str| attribute(root.path(), event, 0).unwrap_err();
        assert_eq!(
            refused("cpu_core/event=1,nonsense=2/"),
            "PMU `cpu_core` has neither a term nor an event `nonsense`; its terms are event, inv, ldlat, umask, \
             its events are for-one-core, mem-loads, slots"
        );
        assert!(
            refused("cpu_core/event=1,umsk=2/")
                .ends_with("use umask; its terms are event, inv, ldlat, umask")
        );
        assert!(refused("uncore_imc/clockticks/").contains("its terms are event, it has no events"));
        assert!(refused("cpu_core/event=0x1d1/").contains("the value 0x1d1 of `event` has more than 8 bits"));
        assert!(refused("cpu_core/for-one-core/").contains("needs a value for `umask`"));
        assert!(refused("cpu/event=1/").contains("no PMU `cpu`"));
        // A generic event is no term beside others.
        assert!(refused("cpu_core/cycles,umask=1/").contains("neither a term nor an event `cycles`"));
        assert!(refused("uncore_imc/cycles/").contains("neither a term nor an event `cycles`"));
    }
}
