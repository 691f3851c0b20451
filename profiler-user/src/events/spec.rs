//! One event in perf's spelling.

use super::modifiers::Modifiers;
use super::names::{HARDWARE, Named, SOFTWARE, WITHOUT_SAMPLES, by_event, by_name};
use super::parse_error::ParseEventError;
use super::pmu::Pmu;
use super::pmu_event::{self, PmuEvent};
use super::rate::Rate;
use super::system_root::SYSTEM_ROOT;
use super::tracepoint::Tracepoint;
use super::{breakpoint, cache};
use crate::suggest;
use perf_event::events::{Breakpoint, Cache, Hardware, Software};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// An event that can be sampled, as the user names it: what is counted, and where.
///
/// Read from and displayed in perf's spelling (perf-list(1)): `cycles:u`, `LLC-load-misses`, `r01c4`,
/// `page-faults`, `mem:0x401130:x`. Aliases are displayed by perf's own name, so that equal events look
/// equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    kind: EventKind,
    modifiers: Modifiers,
}

/// What an event counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A generic event of the CPU's PMU.
    Hardware(Hardware),
    /// A generic cache event of the CPU's PMU.
    Cache(Cache),
    /// An event of the CPU's PMU by its own code (`perf_event_attr.config`).
    Raw(u64),
    /// An event that the kernel counts.
    Software(Software),
    /// An address that the CPU's debug registers watch in every process.
    Breakpoint(Breakpoint),
    /// An event of a PMU that is named.
    Pmu(Box<PmuEvent>),
    /// A place in the kernel.
    Tracepoint(Box<Tracepoint>),
}

impl EventSpec {
    /// `cycles`, what is sampled unless the user says otherwise.
    pub fn cycles() -> Self {
        EventKind::Hardware(Hardware::CPU_CYCLES).into()
    }

    /// `cpu-clock`, what every machine can sample.
    pub fn cpu_clock() -> Self {
        EventKind::Software(Software::CPU_CLOCK).into()
    }

    /// What is counted.
    pub fn kind(&self) -> &EventKind {
        &self.kind
    }

    /// Where it is counted, and how precisely.
    pub fn modifiers(&self) -> Modifiers {
        self.modifiers
    }

    /// Other names that perf has for the event.
    pub fn aliases(&self) -> &'static [&'static str] {
        match &self.kind {
            EventKind::Hardware(event) => by_event(HARDWARE, event).map_or(&[], |named| named.aliases),
            EventKind::Software(event) => by_event(SOFTWARE, event).map_or(&[], |named| named.aliases),
            _ => &[],
        }
    }

    /// Plural noun for what is counted: `cycles`, `misses`, `faults`, `executions`; `ns` for clocks.
    pub fn unit(&self) -> &'static str {
        match &self.kind {
            EventKind::Hardware(event) => by_event(HARDWARE, event).map_or(UNNAMED_UNIT, |named| named.unit),
            EventKind::Software(event) => by_event(SOFTWARE, event).map_or(UNNAMED_UNIT, |named| named.unit),
            EventKind::Cache(event) => cache::unit(event),
            EventKind::Breakpoint(breakpoint) => breakpoint::unit(breakpoint),
            EventKind::Pmu(event) => event.only_name().map_or(UNNAMED_UNIT, unit_of_generic),
            EventKind::Raw(_) | EventKind::Tracepoint(_) => UNNAMED_UNIT,
        }
    }

    /// Whether the event is time, so that the weight of a sample is in nanoseconds.
    ///
    /// Opened for all processes of a CPU, `task-clock` counts the same time as `cpu-clock`.
    pub fn is_clock(&self) -> bool {
        matches!(self.kind, EventKind::Software(Software::CPU_CLOCK | Software::TASK_CLOCK))
    }

    /// Whether the CPU's PMU counts the event. Only such events have precise levels.
    pub fn is_counted_by_pmu(&self) -> bool {
        match &self.kind {
            EventKind::Hardware(_) | EventKind::Cache(_) | EventKind::Raw(_) => true,
            EventKind::Pmu(event) => event.is_of_core(),
            EventKind::Software(_) | EventKind::Breakpoint(_) | EventKind::Tracepoint(_) => false,
        }
    }

    /// The rate that is part of the event: `period=N` of a PMU's event.
    pub fn own_rate(&self) -> Option<Rate> {
        match &self.kind {
            EventKind::Pmu(event) => event.period.map(Rate::Period),
            _ => None,
        }
    }

    /// The rate when the user gives none: the event's own, 997 Hz for clocks and what the PMU counts, and else every occurrence, which is
    /// exact.
    ///
    /// The period that the kernel adapts for an event that it counts itself grows without bound in a burst
    /// (`perf_adjust_period` in `kernel/events/core.c` divides the next period by the time that the last one took).
    pub fn default_rate(&self) -> Rate {
        let is_adapted = self.is_clock() || self.is_counted_by_pmu();
        self.own_rate().unwrap_or(if is_adapted { Rate::DEFAULT_FREQUENCY } else { Rate::EVERY })
    }

    /// What to call the event: the user's own name for it (`name=TEXT` of a PMU's event), else its spelling.
    pub fn name(&self) -> String {
        let own = match &self.kind {
            EventKind::Pmu(event) => event.name.clone(),
            _ => None,
        };
        own.unwrap_or_else(|| self.to_string())
    }
}

impl EventSpec {
    /// The event with these modifiers beside its own.
    pub(super) fn with_added(self, modifiers: Modifiers) -> Result<Self, ParseEventError> {
        Self { modifiers: self.modifiers.with_added(modifiers), ..self }.checked()
    }

    fn checked(self) -> Result<Self, ParseEventError> {
        if self.modifiers.precise().is_some() && !self.is_counted_by_pmu() {
            return Err(ParseEventError::PreciseWithoutPmu { event: self.kind.to_string() });
        }
        Ok(self)
    }
}

impl From<EventKind> for EventSpec {
    /// The event without modifiers.
    fn from(kind: EventKind) -> Self {
        Self { kind, modifiers: Modifiers::default() }
    }
}

impl FromStr for EventSpec {
    type Err = ParseEventError;

    fn from_str(event: &str) -> Result<Self, Self::Err> {
        let (kind, modifiers) = parse_kind(event)?;
        let modifiers = match modifiers {
            Some(letters) => Modifiers::parse(letters, event)?,
            None => Modifiers::default(),
        };
        Self { kind, modifiers }.checked()
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        let separator = if matches!(self.kind, EventKind::Pmu(_)) { "" } else { ":" };
        if self.modifiers == Modifiers::default() {
            Ok(())
        } else {
            write!(f, "{separator}{}", self.modifiers)
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardware(event) => {
                f.write_str(by_event(HARDWARE, event).map_or("hardware", |named| named.name))
            }
            Self::Software(event) => {
                f.write_str(by_event(SOFTWARE, event).map_or("software", |named| named.name))
            }
            Self::Cache(event) => f.write_str(&cache::canonical(event)),
            Self::Breakpoint(breakpoint) => f.write_str(&breakpoint::canonical(breakpoint)),
            // At least two bytes: unit mask and event select, as vendors' manuals and perf's own examples
            // write them.
            Self::Raw(config) => write!(f, "r{config:04x}"),
            Self::Pmu(event) => event.fmt(f),
            Self::Tracepoint(tracepoint) => tracepoint.fmt(f),
        }
    }
}

const UNNAMED_UNIT: &str = "events";

/// The unit of a generic event of the CPU's PMU, by its name.
fn unit_of_generic(name: &str) -> &'static str {
    match by_name(HARDWARE, name) {
        Some(named) => named.unit,
        None => cache::parse(name).and_then(Result::ok).map_or(UNNAMED_UNIT, |event| cache::unit(&event)),
    }
}

/// Splits the event into what it counts and the text of its modifiers.
fn parse_kind(event: &str) -> Result<(EventKind, Option<&str>), ParseEventError> {
    if event.contains(['{', '}']) {
        return Err(ParseEventError::Group { event: event.to_owned() });
    }
    if event.starts_with(breakpoint::PREFIX) {
        let (breakpoint, modifiers) = breakpoint::parse(event)?;
        return Ok((EventKind::Breakpoint(breakpoint), modifiers));
    }
    if event.contains('/') {
        let (event, modifiers) = pmu_event::parse(event)?;
        return Ok((EventKind::Pmu(Box::new(event)), modifiers));
    }
    let (name, modifiers) = match event.split_once(':') {
        Some((name, modifiers)) => (name, Some(modifiers)),
        None => (event, None),
    };
    if let Some(kind) = parse_name(name)? {
        return Ok((kind, modifiers));
    }
    match Tracepoint::parse(event) {
        // A mistyped name with modifiers looks like a tracepoint too.
        Some((tracepoint, modifiers_of_it))
            if modifiers.is_none_or(|text| Modifiers::parse(text, event).is_err()) =>
        {
            Ok((EventKind::Tracepoint(Box::new(tracepoint)), modifiers_of_it))
        }
        _ => Err(unknown(Path::new(SYSTEM_ROOT), name)),
    }
}

/// The event of a name that has no modifiers, or `None` when there is none of this name.
fn parse_name(name: &str) -> Result<Option<EventKind>, ParseEventError> {
    if let Some(named) = by_name(HARDWARE, name) {
        return Ok(Some(EventKind::Hardware(named.event)));
    }
    if let Some(named) = by_name(SOFTWARE, name) {
        return Ok(Some(EventKind::Software(named.event)));
    }
    if let Some(name) = WITHOUT_SAMPLES.iter().find(|&&known| known == name) {
        return Err(ParseEventError::NoSamples { name });
    }
    if let Some(event) = cache::parse(name) {
        return event.map(|event| Some(EventKind::Cache(event)));
    }
    parse_raw(name)
}

/// `rHEX`; `None` when the name is not of that form.
fn parse_raw(name: &str) -> Result<Option<EventKind>, ParseEventError> {
    let is_hex = |digits: &&str| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let Some(digits) = name.strip_prefix('r').filter(is_hex) else { return Ok(None) };
    match u64::from_str_radix(digits, 16) {
        Ok(config) => Ok(Some(EventKind::Raw(config))),
        Err(_) => Err(ParseEventError::RawTooLong { name: name.to_owned() }),
    }
}

/// The machine is asked only for what to suggest: a PMU's own event is written with the PMU.
fn unknown(root: &Path, name: &str) -> ParseEventError {
    let pmus = Pmu::all(root).unwrap_or_default();
    let of_pmus = pmus.iter().filter(|pmu| pmu.events().iter().any(|event| event == name));
    let mut suggestions: Vec<String> = of_pmus.map(|pmu| format!("{}/{name}/", pmu.name())).collect();
    if suggestions.is_empty() {
        let hardware = HARDWARE.iter().flat_map(Named::spellings).map(str::to_owned);
        let software = SOFTWARE.iter().flat_map(Named::spellings).map(str::to_owned);
        let known = hardware.chain(software).chain(cache::all().map(|event| cache::canonical(&event)));
        suggestions = suggest::nearest(name, known);
    }
    ParseEventError::Unknown { name: name.to_owned(), suggestions }
}

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    fn parse(event: &str) -> EventSpec {
        event.parse().unwrap_or_else(|error| panic!("{event}: {error}"))
    }

    fn error(event: &str) -> String {
        event.parse::<EventSpec>().expect_err(event).to_string()
    }

    #[test]
    fn every_name_and_alias_is_taken_and_displayed_canonically() {
        let hardware =
            HARDWARE.iter().flat_map(|named| named.spellings().map(|spelling| (spelling, named.name)));
        let software =
            SOFTWARE.iter().flat_map(|named| named.spellings().map(|spelling| (spelling, named.name)));
        for (spelling, name) in hardware.chain(software) {
            assert_eq!(parse(spelling).to_string(), name);
            assert_eq!(parse(name), parse(spelling));
            let user_only = format!("{spelling}:u");
            assert_eq!(parse(&user_only).to_string(), format!("{name}:u"));
        }
        for event in cache::all() {
            let name = cache::canonical(&event);
            assert_eq!(parse(&name).to_string(), name);
        }
    }

    #[test]
    fn displayed_events_read_back_as_the_same_event() {
        for (written, displayed) in [
            ("cpu-cycles:ppu", "cycles:upp"),
            ("l1d-misses:k", "L1-dcache-load-misses:k"),
            ("r01c4", "r01c4"),
            ("r11", "r0011"),
            ("r1B7:u", "r01b7:u"),
            ("rffffffffffffffff", "rffffffffffffffff"),
            ("faults:HG", "page-faults:GH"),
            ("mem:4198704:x:u", "mem:0x401130:x:u"),
            ("mem:0x401130", "mem:0x401130:rw"),
            ("mem:0x401130/8:u", "mem:0x401130/8:rw:u"),
            ("cpu/event=0xd1,umask=32/:u", "cpu/event=0xd1,umask=0x20/u"),
            ("cpu/event=1,name=mine/", "cpu/event=0x1,name=mine/"),
            ("sched:sched_switch:k", "sched:sched_switch:k"),
        ] {
            assert_eq!(parse(written).to_string(), displayed);
            assert_eq!(parse(displayed), parse(written));
        }
    }

    #[test]
    fn names_lead_to_the_kernels_events() {
        assert_eq!(parse("branch-instructions").kind(), &EventKind::Hardware(Hardware::BRANCH_INSTRUCTIONS));
        assert_eq!(parse("ref-cycles").kind(), &EventKind::Hardware(Hardware::REF_CPU_CYCLES));
        assert_eq!(parse("cs").kind(), &EventKind::Software(Software::CONTEXT_SWITCHES));
        assert_eq!(parse("major-faults").kind(), &EventKind::Software(Software::PAGE_FAULTS_MAJ));
        assert_eq!(parse("r01c4").kind(), &EventKind::Raw(0x1c4));
    }

    #[test]
    fn units_rates_and_clocks() {
        for (event, unit, is_clock) in [
            ("cycles", "cycles", false),
            ("instructions:u", "instructions", false),
            ("LLC-loads", "loads", false),
            ("LLC-store-misses", "misses", false),
            ("r01c4", "events", false),
            ("cpu-clock", "ns", true),
            ("task-clock:u", "ns", true),
            ("minor-faults", "faults", false),
            ("mem:16:x", "executions", false),
            ("mem:16:w", "accesses", false),
            ("cpu_core/cycles/", "cycles", false),
            ("cpu/LLC-load-misses/u", "misses", false),
            ("cpu/event=1/", "events", false),
            ("msr/tsc/", "events", false),
        ] {
            assert_eq!((parse(event).unit(), parse(event).is_clock()), (unit, is_clock), "{event}");
        }
        assert_eq!(parse("mem:16:x").default_rate(), Rate::EVERY);
        assert_eq!(parse("page-faults").default_rate(), Rate::EVERY);
        assert_eq!(parse("task-clock").default_rate(), Rate::DEFAULT_FREQUENCY);
    }

    #[test]
    fn mistyped_names_get_a_suggestion() {
        assert_eq!(error("cyles"), "unknown event `cyles`: did you mean `cycles`?");
        assert_eq!(error("cyles:u"), "unknown event `cyles`: did you mean `cycles`?");
        assert!(error("llc-load-misses").contains("did you mean `LLC-load-misses`?"));
        assert!(error("pagefaults").contains("`page-faults`"));
        assert!(error("").starts_with("unknown event ``"));
        assert!(error("r0x1c4").starts_with("unknown event"));
    }

    #[test]
    fn an_event_of_a_pmu_is_suggested_with_its_pmu() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "/sys/bus/event_source/devices/cpu_core/events/slots", "event=0x00,umask=0x4");
        let text = |name: &str| unknown(root.path(), name).to_string();
        assert_eq!(text("slots"), "unknown event `slots`: did you mean `cpu_core/slots/`?");
        assert!(text("cyles").contains("`cycles`"));
    }

    #[test]
    fn wrong_modifiers_are_named() {
        assert!(error("cycles:z").contains("unknown modifier `z`"));
        assert!(error("cycles:u:k").contains("unknown modifier `:`"));
        assert!(error("cycles:pppp").contains("modifier `p`"));
        assert!(error("cycles:").contains("no modifier"));
        assert!(error("cpu-clock:pp").contains("`cpu-clock` is not raised by the CPU's PMU"));
        assert!(error("mem:16:x:p").contains("`mem:0x10:x` is not raised"));
    }

    #[test]
    fn events_of_pmus_and_tracepoints() {
        assert_eq!(parse("cpu/event=0xd1/u").modifiers(), parse("cycles:u").modifiers());
        assert_eq!(parse("cpu/event=1,period=100/").default_rate().to_string(), "every 100 events");
        assert_eq!(
            parse("cpu/event=1,period=100/").own_rate(),
            Some(parse("cpu/event=1,period=100/").default_rate())
        );
        assert_eq!(
            (parse("cpu/event=1,name=mine/").name(), parse("cs:u").name()),
            ("mine".into(), "context-switches:u".into())
        );
        assert!(parse("cpu/event=0xd1/pp").is_counted_by_pmu());
        assert!(error("software/config=3/p").contains("is not raised by the CPU's PMU"));
        let switch = parse("sched:sched_switch");
        assert!(matches!(switch.kind(), EventKind::Tracepoint(_)));
        assert_eq!((switch.unit(), switch.default_rate()), ("events", Rate::EVERY));
        assert!(error("sched:sched_switch:p").contains("`sched:sched_switch` is not raised"));
        assert!(error("sched:sched_switch:").contains("no modifier"));
    }

    #[test]
    fn other_forms_of_perf_are_refused_in_words() {
        for (event, words) in [
            ("cpu/event=0xd1", "bad PMU event `cpu/event=0xd1`: the closing `/` is missing"),
            ("cpu/event=0xd1/z", "unknown modifier `z`"),
            ("{cycles,instructions}", "`{cycles,instructions}` is a group of events, where one is wanted"),
            ("bpf-output", "`bpf-output` raises no samples"),
            ("dummy", "`dummy` raises no samples"),
            ("L1-icache-stores", "has no stores"),
            ("r11111111111111111", "longer than 16"),
        ] {
            assert!(error(event).contains(words), "{}", error(event));
        }
    }
}
