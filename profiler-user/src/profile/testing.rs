//! Small profiles for unit tests.

use indexmap::IndexSet;

use super::model::{Frame, FrameId, FrameKind, Function, FunctionId, Profile, Sample, StackId, Task, TaskId};
use super::{EventInfo, Header};

/// A profile of one task `app` from folded stacks with samples and weight. Frames ending in `_[k]` and `_[i]` are kernel and inlined frames.
pub(crate) fn profile(stacks: &[(&str, u64, u64)]) -> Profile {
    let event = EventInfo {
        name: "cpu-clock".into(),
        unit: "ns".into(),
        rate: "997 Hz".into(),
        ..EventInfo::default()
    };
    let mut profile = Profile {
        header: Header { event, seconds: 1.0, ..Header::default() },
        functions: IndexSet::new(),
        frames: IndexSet::new(),
        stacks: IndexSet::new(),
        tasks: IndexSet::new(),
        samples: Vec::new(),
    };
    profile.tasks.insert(Task { process: 42, thread: 42, comm: "app".into() });
    for &(folded, samples, weight) in stacks {
        let frames: Box<[FrameId]> = folded.split(';').map(|name| add_frame(&mut profile, name)).collect();
        let stack = StackId(profile.stacks.insert_full(frames).0 as u32);
        profile.samples.push(Sample { task: TaskId(0), stack, samples, weight });
        profile.header.samples += samples;
        profile.header.weight += weight;
    }
    profile
}

fn add_frame(profile: &mut Profile, name: &str) -> FrameId {
    let (name, kind, object) = if let Some(name) = name.strip_suffix("_[k]") {
        (name, FrameKind::Kernel, "[kernel]")
    } else if let Some(name) = name.strip_suffix("_[i]") {
        (name, FrameKind::Inlined, "app")
    } else {
        (name, FrameKind::User, "app")
    };
    let function = profile.functions.insert_full(Function { name: name.into(), object: object.into() }).0;
    FrameId(profile.frames.insert_full(Frame { function: FunctionId(function as u32), kind }).0 as u32)
}
