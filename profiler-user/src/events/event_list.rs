//! A list of events: `cycles,cpu/event=0xd1,umask=0x20/,{branches,branch-misses}:u`, or named sets.

use super::breakpoint;
use super::event_set::EventSet;
use super::modifiers::Modifiers;
use super::parse_error::ParseEventError;
use super::spec::EventSpec;
use std::str::FromStr;

/// Events to count, each once, in the order in which they were named.
///
/// Read from events, groups of events in braces and names of sets, with commas between them; `none` is the empty list. Modifiers
/// after a group are added to those of each of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventList {
    events: Vec<ListedEvent>,
}

/// An event of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// The event.
    pub spec: EventSpec,
    /// The set that it came with; `None` when it was asked for by name, so that it must be counted or refused.
    pub set: Option<EventSet>,
    /// The number of its group, from 0: the events of a group are to be counted together.
    pub group: Option<usize>,
}

/// Why a text is not a list of events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventListError {
    /// A part of it is not an event.
    #[error(transparent)]
    Event(#[from] ParseEventError),
    /// Nothing stands between two commas, or between braces.
    #[error("an event is missing in `{}`: write events with commas between them, or none", list.escape_debug())]
    Missing {
        /// The list as it was written.
        list: String,
    },
    /// A brace has no partner, or stands inside another pair.
    #[error("the braces in `{}` do not match: write {{event,event}}, and no braces inside others", group.escape_debug())]
    Braces {
        /// The group as it was written.
        group: String,
    },
    /// `none` stands beside events.
    #[error("`none` stands beside events in `{}`: leave it out", list.escape_debug())]
    NoneBesideEvents {
        /// The list as it was written.
        list: String,
    },
}

impl EventList {
    /// The events, in the order in which they were named.
    pub fn events(&self) -> &[ListedEvent] {
        &self.events
    }

    /// The list of a set.
    pub fn of_set(set: EventSet) -> Self {
        let mut list = Self::default();
        list.add_set(set);
        list
    }

    fn add_set(&mut self, set: EventSet) {
        for spec in set.events() {
            self.add(ListedEvent { spec, set: Some(set), group: None });
        }
    }

    /// An event that is there already stays where it is; being asked for by name, or in a group, outweighs a set.
    fn add(&mut self, event: ListedEvent) {
        match self.events.iter_mut().find(|listed| listed.spec == event.spec) {
            Some(listed) => {
                listed.set = event.set.and(listed.set);
                listed.group = listed.group.or(event.group);
            }
            None => self.events.push(event),
        }
    }

    fn add_group(&mut self, text: &str, group: usize) -> Result<(), EventListError> {
        let braces = || EventListError::Braces { group: text.to_owned() };
        let inner = text.strip_prefix('{').ok_or_else(braces)?;
        let (inner, after) = inner.split_once('}').ok_or_else(braces)?;
        if inner.contains('{') || after.contains(['{', '}']) {
            return Err(braces());
        }
        let modifiers = match after.strip_prefix(':') {
            Some(letters) => Modifiers::parse(letters, text)?,
            None if after.is_empty() => Modifiers::default(),
            None => return Err(braces()),
        };
        for part in parts(inner) {
            if part.is_empty() {
                return Err(EventListError::Missing { list: text.to_owned() });
            }
            let spec = part.parse::<EventSpec>()?.with_added(modifiers)?;
            self.add(ListedEvent { spec, set: None, group: Some(group) });
        }
        Ok(())
    }
}

impl FromStr for EventList {
    type Err = EventListError;

    fn from_str(text: &str) -> Result<Self, EventListError> {
        if text.trim() == NONE {
            return Ok(Self::default());
        }
        let (mut list, mut groups) = (Self::default(), 0);
        for part in parts(text) {
            match part {
                "" => return Err(EventListError::Missing { list: text.to_owned() }),
                NONE => return Err(EventListError::NoneBesideEvents { list: text.to_owned() }),
                group if group.contains(['{', '}']) => {
                    list.add_group(group, groups)?;
                    groups += 1;
                }
                part => match EventSet::of_name(part) {
                    Some(set) => list.add_set(set),
                    None => list.add(ListedEvent { spec: part.parse()?, set: None, group: None }),
                },
            }
        }
        Ok(list)
    }
}

/// The name of the empty list.
const NONE: &str = "none";

/// The parts between commas, but for commas between the slashes of a PMU's event or between braces.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut in_pmu, mut in_braces) = (false, false);
    // Where the event begins that is being read, which in braces is not where the part does.
    let mut event = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            // A breakpoint has a slash before its length.
            '/' if !list[event..].trim_start().starts_with(breakpoint::PREFIX) => in_pmu = !in_pmu,
            '{' if !in_pmu => (in_braces, event) = (true, at + 1),
            '}' if !in_pmu => in_braces = false,
            ',' if !in_pmu => {
                event = at + 1;
                if !in_braces {
                    parts.push(list[start..at].trim());
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> Vec<ListedEvent> {
        list.parse::<EventList>().unwrap_or_else(|error| panic!("{list}: {error}")).events
    }

    fn spellings(list: &str) -> Vec<String> {
        parse(list).iter().map(|event| event.spec.to_string()).collect()
    }

    fn error(list: &str) -> String {
        list.parse::<EventList>().expect_err(list).to_string()
    }

    #[test]
    fn commas_part_events_only_outside_slashes_and_braces() {
        for (list, expected) in [
            ("cycles", &["cycles"][..]),
            ("cycles, instructions:u", &["cycles", "instructions:u"]),
            ("cpu/event=0xd1,umask=0x20/u,r01c4", &["cpu/event=0xd1,umask=0x20/u", "r01c4"]),
            (
                "mem:0x10/8:w,cs,cpu/event=1,umask=2/",
                &["mem:0x10/8:w", "context-switches", "cpu/event=0x1,umask=0x2/"],
            ),
            (
                "{cs,cpu/event=1,umask=2/},faults",
                &["context-switches", "cpu/event=0x1,umask=0x2/", "page-faults"],
            ),
            ("{mem:0x10/8:w,mem:0x20/8:w}:u", &["mem:0x10/8:w:u", "mem:0x20/8:w:u"]),
            ("sched:sched_switch,cs", &["sched:sched_switch", "context-switches"]),
            ("none", &[]),
        ] {
            assert_eq!(spellings(list), expected, "{list}");
        }
    }

    #[test]
    fn a_group_keeps_its_members_and_gives_them_its_modifiers() {
        let listed = parse("cs,{cycles:k,instructions}:u,{branches,faults}");
        let groups: Vec<(String, Option<usize>)> =
            listed.iter().map(|event| (event.spec.to_string(), event.group)).collect();
        let expected = [
            ("context-switches", None),
            ("cycles:uk", Some(0)),
            ("instructions:u", Some(0)),
            ("branches", Some(1)),
            ("page-faults", Some(1)),
        ];
        assert_eq!(groups, expected.map(|(event, group)| (event.to_owned(), group)));
        assert_eq!(spellings("{cycles:p,branches}:upp"), ["cycles:upp", "branches:upp"]);
    }

    #[test]
    fn an_event_of_a_set_that_is_also_named_is_no_longer_optional() {
        let listed = parse("default,branch,instructions,page-faults");
        let sets: Vec<(String, Option<EventSet>)> =
            listed.into_iter().map(|event| (event.spec.to_string(), event.set)).collect();
        let expected = [
            ("cycles", Some(EventSet::Default)),
            ("instructions", None),
            ("LLC-load-misses", Some(EventSet::Default)),
            ("branch-misses", Some(EventSet::Default)),
            ("branches", Some(EventSet::Branch)),
            ("page-faults", None),
        ];
        assert_eq!(sets, expected.map(|(event, set)| (event.to_owned(), set)));
        assert_eq!(EventList::of_set(EventSet::Memory), "memory".parse().unwrap());
    }

    #[test]
    fn mistakes_are_named() {
        for (list, words) in [
            ("", "an event is missing in ``"),
            ("cycles,", "an event is missing in `cycles,`"),
            ("{cycles,}", "an event is missing in `{cycles,}`"),
            ("{}", "an event is missing"),
            ("cyles,cs", "did you mean `cycles`?"),
            ("cpu/event=1,cs", "the closing `/` is missing"),
            ("{cycles,cs", "the braces in `{cycles,cs` do not match"),
            ("cycles},cs", "the braces in `cycles}` do not match"),
            ("{{cs}}", "do not match"),
            ("{cs}u", "do not match"),
            ("{cs}:", "no modifier follows"),
            ("{cs}:z", "unknown modifier `z`"),
            ("{cs}:p", "has no precise levels"),
            ("{default}", "unknown event `default`"),
            ("none,cs", "`none` stands beside events"),
        ] {
            assert!(error(list).contains(words), "{list}: {}", error(list));
        }
    }
}
