//! Putting names to stacks, and counting how far they reach.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::advice::{self, Host};
use super::kernel::{KERNEL, KernelNames};
use super::{NamedCode, NoName, Resolution, jit};
use crate::function_parts;
use crate::printable::printable_name;
use crate::processes::{ObjectId, Objects};
use crate::profile::{
    EventId, Frame, FrameId, FrameKind, Function, Header, Mapping, MappingId, ObjectLack, Profile, RawFrame,
    RawStack, Recording, Sample, StackId, StackState, StacksInfo, TaskId,
};
use crate::types::{ElfAddress, FileOffset, Tgid};

/// All names that a recording needs.
pub(super) struct Names<'a> {
    objects: &'a Objects,
    kernel: KernelNames,
    user: HashMap<(ObjectId, FileOffset), Resolution>,
    made: HashMap<(Tgid, jit::Place), Resolution>,
}

/// What lacks names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Nameless {
    Object(ObjectId),
    /// Code made at run time, in all processes of one runtime.
    Made,
}

/// Name of the object of code made at run time.
const MADE: &str = "[jit]";

impl<'a> Names<'a> {
    pub(super) fn new(objects: &'a Objects, kernel: KernelNames) -> Self {
        Self { objects, kernel, user: HashMap::new(), made: HashMap::new() }
    }

    /// Adds what was found for an object.
    pub(super) fn add(&mut self, object: ObjectId, resolved: impl Iterator<Item = (FileOffset, Resolution)>) {
        self.user.extend(resolved.map(|(offset, resolution)| ((object, offset), resolution)));
    }

    /// Adds what was found for code that a process made.
    pub(super) fn add_made(&mut self, tgid: Tgid, resolved: impl Iterator<Item = (jit::Place, Resolution)>) {
        self.made.extend(resolved.map(|(place, resolution)| ((tgid, place), resolution)));
    }

    /// Builds the profile.
    pub(super) fn into_profile(self, recording: &Recording, header: Header, host: &Host) -> Profile {
        let mut profile = Profile { header, tasks: recording.tasks().clone(), ..Profile::default() };
        let frames: Vec<NamedFrame> =
            recording.frames().iter().map(|frame| self.name_frame(*frame, &mut profile)).collect();
        let stacks: Vec<NamedStack> =
            recording.stacks().iter().map(|stack| name_stack(stack, &frames, &mut profile)).collect();
        let mut quality = Quality::default();
        for (key, amount) in recording.samples() {
            let stack = &stacks[key.stack as usize];
            if key.event == EventId::MAIN {
                quality.count(stack, amount.samples);
            }
            profile.samples.push(Sample {
                task: TaskId(key.task),
                stack: stack.id,
                event: key.event,
                slice: key.slice,
                samples: amount.samples,
                weight: amount.weight,
            });
        }
        self.report(quality, &mut profile.header, host);
        // One order, whatever the hash map's: sums of fractions depend on it, and a saved profile must show what the run showed.
        profile.numbered_by_samples()
    }

    fn name_frame(&self, frame: RawFrame, profile: &mut Profile) -> NamedFrame {
        let (mut unnamed, mut start, mut also) = (None, None, &[][..]);
        let (code, inlined) = match self.resolution(frame) {
            Some((_, Resolution::Named { function, inlined, also: names })) => {
                also = names.as_slice();
                (Some(function.clone()), inlined.as_slice())
            }
            Some((nameless, Resolution::Unnamed { why, start: known })) => {
                (unnamed, start) = (Some((nameless, why.clone())), *known);
                (None, &[][..])
            }
            None => (self.named_before(frame), &[][..]),
        };
        let kind = if matches!(frame, RawFrame::Kernel(_)) { FrameKind::Kernel } else { FrameKind::User };
        let name = code.as_ref().map(|code| code.name.clone());
        let code = code.unwrap_or_else(|| NamedCode { name: self.stand_in(frame, start), line: None });
        let place = Place { mapping: profile.add_mapping(self.mapping(frame)), address: self.address(frame) };
        let mut frames = vec![place.add_frame(profile, code, kind)];
        if !also.is_empty() {
            let Function { name, object } = profile.function(profile.frame(frames[0]).function).clone();
            let of_object = profile.header.names.also.entry(object.to_string()).or_default();
            let names = of_object.entry(name.to_string()).or_default();
            names.extend(also.iter().map(|name| printable_name(name).into_owned()));
        }
        frames.extend(inlined.iter().map(|code| place.add_frame(profile, code.clone(), FrameKind::Inlined)));
        NamedFrame { frames, kind, name, unnamed }
    }

    /// What was found for a user frame, and what it lies in.
    fn resolution(&self, frame: RawFrame) -> Option<(Nameless, &Resolution)> {
        match frame {
            RawFrame::User { object, offset } => {
                Some((Nameless::Object(object), self.user.get(&(object, offset))?))
            }
            RawFrame::Anonymous { tgid, address, time } => {
                Some((Nameless::Made, self.made.get(&(tgid, (address, time)))?))
            }
            RawFrame::Kernel(_) | RawFrame::Jit { .. } | RawFrame::UnknownUser => None,
        }
    }

    /// What needs no object: functions of the kernel, and code that had its name when it was sampled.
    fn named_before(&self, frame: RawFrame) -> Option<NamedCode> {
        let name = match frame {
            RawFrame::Kernel(address) => function_parts::split(self.kernel.function(address)?).0,
            RawFrame::Jit { name, .. } => self.objects.jit_code().name(name),
            RawFrame::User { .. } | RawFrame::Anonymous { .. } | RawFrame::UnknownUser => return None,
        };
        Some(NamedCode { name: name.into(), line: None })
    }

    fn mapping(&self, frame: RawFrame) -> Mapping {
        match frame {
            RawFrame::User { object, .. } => {
                let object = self.objects.get(object);
                Mapping {
                    name: Arc::clone(&object.name),
                    path: object.path.to_string_lossy().into(),
                    build_id: object.build_id.map_or_else(String::new, |id| id.to_string()).into(),
                }
            }
            RawFrame::Kernel(address) => unfiled(&self.kernel.object(address)),
            RawFrame::Anonymous { .. } | RawFrame::Jit { .. } => unfiled(MADE),
            RawFrame::UnknownUser => unfiled("[unknown]"),
        }
    }

    /// Its place in what it lies in.
    fn address(&self, frame: RawFrame) -> u64 {
        match frame {
            RawFrame::User { offset, .. } => offset.0,
            RawFrame::Anonymous { address, .. } | RawFrame::Jit { address, .. } => address.0,
            RawFrame::Kernel(address) => self.kernel.place(address),
            RawFrame::UnknownUser => 0,
        }
    }

    /// What a frame without a name is called, in a function that begins here. In an object that cannot be read its place in the file is all
    /// that is known.
    fn stand_in(&self, frame: RawFrame, start: Option<ElfAddress>) -> String {
        match frame {
            RawFrame::User { object, offset } => {
                let start = start.map_or(offset.0, |start| start.0);
                format!("[{}+{start:#x}]", self.objects.get(object).name)
            }
            RawFrame::Anonymous { .. } | RawFrame::Jit { .. } => MADE.into(),
            RawFrame::Kernel(_) | RawFrame::UnknownUser => "[unknown]".into(),
        }
    }

    fn report(&self, quality: Quality, header: &mut Header, host: &Host) {
        quality.fill(&mut header.stacks);
        header.names.frames = quality.frames;
        header.names.named = quality.named;
        let mut unnamed: Vec<ObjectLack> = quality
            .unnamed
            .into_iter()
            .map(|((nameless, why), samples)| match nameless {
                Nameless::Object(id) => {
                    let object = self.objects.get(id);
                    let path = object.path.display().to_string();
                    ObjectLack { object: path, samples, reason: host.describe(&why, object) }
                }
                Nameless::Made => {
                    ObjectLack { object: MADE.into(), samples, reason: advice::without_names(&why) }
                }
            })
            .collect();
        unnamed.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.object.cmp(&b.object)));
        header.names.without_symbols = unnamed;
        header.notes.extend(self.kernel.missing.clone());
    }
}

/// A frame with its name, and what was inlined into it.
struct NamedFrame {
    frames: Vec<FrameId>,
    kind: FrameKind,
    /// Its own name; `None` when something stands in for it.
    name: Option<String>,
    unnamed: Option<(Nameless, NoName)>,
}

fn name_stack(stack: &RawStack, named: &[NamedFrame], profile: &mut Profile) -> NamedStack {
    // Outermost first, as the profile wants it.
    let inward = || stack.frames.iter().rev().map(|&frame| &named[frame as usize]);
    let mut frames: Vec<FrameId> = inward().flat_map(|frame| &frame.frames).copied().collect();
    if frames.is_empty() {
        let code = NamedCode { name: "[no user stack]".into(), line: None };
        let mapping = profile.add_mapping(unfiled(KERNEL));
        frames.push(Place { mapping, address: 0 }.add_frame(profile, code, FrameKind::User));
    }
    let outermost_user = inward().find(|frame| frame.kind != FrameKind::Kernel);
    let outermost_user = outermost_user.and_then(|frame| frame.name.as_deref());
    NamedStack {
        id: profile.add_stack(frames),
        state: StackState::judge(stack.end, stack.guess, outermost_user),
        frames: stack.frames.len() as u64,
        named: inward().filter(|frame| frame.name.is_some()).count() as u64,
        unnamed: inward().filter_map(|frame| frame.unnamed.clone()).collect(),
    }
}

struct NamedStack {
    id: StackId,
    state: StackState,
    frames: u64,
    named: u64,
    unnamed: HashSet<(Nameless, NoName)>,
}

#[derive(Default)]
struct Quality {
    states: HashMap<StackState, u64>,
    frames: u64,
    named: u64,
    unnamed: HashMap<(Nameless, NoName), u64>,
}

impl Quality {
    fn count(&mut self, stack: &NamedStack, samples: u64) {
        *self.states.entry(stack.state).or_default() += samples;
        self.frames += stack.frames * samples;
        self.named += stack.named * samples;
        for unnamed in &stack.unnamed {
            *self.unnamed.entry(unnamed.clone()).or_default() += samples;
        }
    }

    fn fill(&self, info: &mut StacksInfo) {
        for (&state, &samples) in &self.states {
            match state {
                StackState::Whole => info.whole += samples,
                StackState::Guessed(reason) => {
                    info.guessed += samples;
                    info.guesses.push((reason.describe().into(), samples));
                }
                StackState::Cut(reason) => info.cut.push((reason.describe(info.frame_limit), samples)),
                StackState::NoUserSide => continue,
            }
            info.user += samples;
        }
        for reasons in [&mut info.guesses, &mut info.cut] {
            reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        }
    }
}

/// Where the code of a frame lies.
#[derive(Clone, Copy)]
struct Place {
    mapping: MappingId,
    address: u64,
}

impl Place {
    fn add_frame(self, profile: &mut Profile, code: NamedCode, kind: FrameKind) -> FrameId {
        let Self { mapping, address } = self;
        let object = Arc::clone(&profile.mapping(mapping).name);
        let function = profile.add_function(Function { name: code.name.into(), object });
        let line = code.line.map(|line| profile.add_line(line));
        profile.add_frame(Frame { function, kind, mapping, address, line })
    }
}

/// A mapping without a file.
fn unfiled(name: &str) -> Mapping {
    Mapping { name: name.into(), path: name.into(), build_id: "".into() }
}
