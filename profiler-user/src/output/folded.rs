//! Folded stacks, one line each: `comm;root;…;leaf WEIGHT`, as perf script and a collapser give them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::text::printable;
use crate::profile::{EventId, Frame, FrameKind, Profile, Sample};

/// What the number behind a stack is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Weight in the event's unit.
    #[default]
    Event,
    /// Number of samples.
    Samples,
}

impl Weight {
    /// What a sample adds.
    pub(super) fn of(self, sample: &Sample) -> u64 {
        match self {
            Self::Event => sample.weight,
            Self::Samples => sample.samples,
        }
    }
}

/// Writes the stacks of an event, equal ones added up, in the order of their text.
pub(super) fn write(profile: &Profile, event: EventId, weight: Weight, to: &mut dyn Write) -> io::Result<()> {
    for (stack, weight) in stacks(profile, event, weight) {
        writeln!(to, "{stack} {weight}")?;
    }
    Ok(())
}

/// Folded stacks of an event with their weight; those without any are left out.
pub(super) fn stacks(profile: &Profile, event: EventId, weight: Weight) -> BTreeMap<String, u64> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for sample in profile.samples_of(event).filter(|sample| weight.of(sample) > 0) {
        *stacks.entry(fold(profile, sample)).or_default() += weight.of(sample);
    }
    stacks
}

fn fold(profile: &Profile, sample: &Sample) -> String {
    let mut line = name(&profile.task(sample.task).comm);
    for &frame in profile.stack(sample.stack) {
        line.push(';');
        line.push_str(&frame_name(profile, profile.frame(frame)));
    }
    line
}

/// A frame as it stands between two semicolons.
pub(super) fn frame_name(profile: &Profile, frame: Frame) -> String {
    let function = name(&profile.function(frame.function).name);
    match frame.kind {
        FrameKind::User => function,
        FrameKind::Inlined => function + "_[i]",
        FrameKind::Kernel => function + "_[k]",
    }
}

/// A name in which no `;` ends a frame and no line break ends a stack.
fn name(name: &str) -> String {
    if name.is_empty() { "[unnamed]".into() } else { printable(name).replace(';', ":") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn lines(stacks: &[(&str, u64, u64)], weight: Weight) -> String {
        let mut text = Vec::new();
        write(&profile(stacks), EventId::MAIN, weight, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn frames_say_where_they_run() {
        let stacks = [("main;f_[i];read;sys_read_[k]", 2, 20), ("main", 1, 10)];
        assert_eq!(lines(&stacks, Weight::Event), "app;main 10\napp;main;f_[i];read;sys_read_[k] 20\n");
        assert_eq!(lines(&stacks, Weight::Samples), "app;main 1\napp;main;f_[i];read;sys_read_[k] 2\n");
    }

    #[test]
    fn names_cannot_break_a_line() {
        let mut profile = profile(&[("main", 1, 1)]);
        profile.functions.clear();
        profile.functions.insert(crate::profile::Function { name: "a;b\n9 <c>".into(), object: "o".into() });
        let mut text = Vec::new();
        write(&profile, EventId::MAIN, Weight::Event, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "app;a:b\u{fffd}9 <c> 1\n");
    }
}
