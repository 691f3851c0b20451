//! Small profiles for unit tests.

use super::model::{EventId, Frame, FrameId, FrameKind, Function, Mapping, Profile, Sample, Task};
use super::{EventInfo, Header, Slices};

/// A profile of one task `app` from folded stacks with samples and weight. Frames ending in `_[k]` and `_[i]` are kernel and inlined frames.
pub(crate) fn profile(stacks: &[(&str, u64, u64)]) -> Profile {
    let event = EventInfo {
        name: "cpu-clock".into(),
        unit: "ns".into(),
        rate: "997 Hz".into(),
        ..EventInfo::default()
    };
    let mut profile = Profile {
        header: Header {
            event,
            seconds: 1.0,
            slices: Slices { count: 1, seconds: 1.0 },
            ..Header::default()
        },
        ..Profile::default()
    };
    add_samples(&mut profile, EventId::MAIN, stacks);
    profile
}

/// The profile with a counter of this name and its stacks.
pub(crate) fn with_counter(mut profile: Profile, name: &str, stacks: &[(&str, u64, u64)]) -> Profile {
    profile.header.counters.push(EventInfo {
        name: name.into(),
        unit: "events".into(),
        ..EventInfo::default()
    });
    let event = EventId(profile.header.counters.len() as u16);
    add_samples(&mut profile, event, stacks);
    profile
}

fn add_samples(profile: &mut Profile, event: EventId, stacks: &[(&str, u64, u64)]) {
    let task = profile.add_task(Task { process: 42, thread: 42, comm: "app".into(), cgroup: "".into() });
    for &(folded, samples, weight) in stacks {
        let frames: Vec<FrameId> = folded.split(';').map(|name| add_frame(profile, name)).collect();
        let stack = profile.add_stack(frames);
        profile.samples.push(Sample { task, stack, event, slice: 0, samples, weight });
        let header = &mut profile.header;
        if event == EventId::MAIN {
            header.samples += samples;
            header.weight += weight;
        }
        let info = match event.0 {
            0 => &mut header.event,
            counter => &mut header.counters[usize::from(counter) - 1],
        };
        info.samples += samples;
        info.weight += weight;
    }
}

fn add_frame(profile: &mut Profile, name: &str) -> FrameId {
    let (name, kind, object) = if let Some(name) = name.strip_suffix("_[k]") {
        (name, FrameKind::Kernel, "[kernel]")
    } else if let Some(name) = name.strip_suffix("_[i]") {
        (name, FrameKind::Inlined, "app")
    } else {
        (name, FrameKind::User, "app")
    };
    let function = profile.add_function(Function { name: name.into(), object: object.into() });
    let mapping =
        profile.add_mapping(Mapping { name: object.into(), path: object.into(), build_id: "".into() });
    profile.add_frame(Frame { function, kind, mapping, address: 0, line: None })
}
