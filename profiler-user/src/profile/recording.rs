//! What was sampled, as addresses: filled at each drain.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexSet;
use profiler_common::frame::UserFrame;
use profiler_common::stack::{Guess, StackEnd};

use super::model::{EventId, Task, index};
use crate::events::Counted;
use crate::kernel::{Amount, RawSample};
use crate::processes::{History, JitCode, JitFrame, JitName, Location, ObjectId};
use crate::types::{FileOffset, KernelAddress, MonotonicTime, Tgid, UserAddress};

/// One frame, independent of the process where that is possible.
///
/// The address of a caller is that of the last byte of its call instruction: the return address may belong to the next function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawFrame {
    /// In an object.
    User {
        /// The object.
        object: ObjectId,
        /// Place in its file.
        offset: FileOffset,
    },
    /// In memory of a process that belongs to no object: code made at run time, which only the process itself can name.
    Anonymous {
        /// The process.
        tgid: Tgid,
        /// Address in it.
        address: UserAddress,
        /// When it was sampled, where its names come with times: until the process ends, other code may take its place.
        time: Option<MonotonicTime>,
    },
    /// In such memory, with the name that it had when it was sampled.
    Jit {
        /// The process.
        tgid: Tgid,
        /// Address in it.
        address: UserAddress,
        /// Its name.
        name: JitName,
    },
    /// In user memory of which nothing is known.
    UnknownUser,
    /// In the kernel.
    Kernel(KernelAddress),
}

impl RawFrame {
    /// The object it lies in.
    #[must_use]
    pub fn object(self) -> Option<ObjectId> {
        match self {
            Self::User { object, .. } => Some(object),
            Self::Kernel(_) | Self::Anonymous { .. } | Self::Jit { .. } | Self::UnknownUser => None,
        }
    }
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// Kernel frames, then user frames, by their [index](Recording::frames).
    pub frames: Box<[u32]>,
    /// How its user side ended.
    pub end: StackEnd,
    /// What frame pointers stood in for on the way.
    pub guess: Guess,
}

/// What tells samples apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Index of the task.
    pub task: u32,
    /// Index of the stack.
    pub stack: u32,
    /// The event.
    pub event: EventId,
    /// Index of the slice of time.
    pub slice: u32,
}

/// All samples of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    tasks: IndexSet<Task>,
    /// Each once: the stacks of a long recording are many, and made of the same frames.
    frames: IndexSet<RawFrame>,
    stacks: IndexSet<RawStack>,
    samples: HashMap<SampleKey, Amount>,
    slicing: Slicing,
}

impl Recording {
    /// Adds what a drain brought, to the present slice. The answer are the objects of its stack, some more than once.
    pub fn add(
        &mut self,
        sample: &RawSample<'_>,
        history: &History,
        jit_code: &mut JitCode,
        cgroup: Arc<str>,
    ) -> impl Iterator<Item = ObjectId> {
        let task = Task {
            process: sample.tgid.0,
            thread: sample.tid.0,
            comm: String::from_utf8_lossy(sample.comm).into(),
            cgroup,
        };
        let frames = normalise(sample, history, jit_code)
            .map(|frame| index(self.frames.insert_full(frame).0))
            .collect();
        let stack = RawStack { frames, end: sample.end, guess: sample.guess };
        let stack = self.stacks.insert_full(stack).0;
        let key = SampleKey {
            task: index(self.tasks.insert_full(task).0),
            stack: index(stack),
            event: EventId(sample.event),
            slice: self.slicing.current(),
        };
        *self.samples.entry(key).or_default() += Amount { samples: sample.samples, weight: sample.weight };
        for (event, &increase) in (1..).map(EventId).zip(sample.increases) {
            if increase.weight > 0 {
                *self.samples.entry(SampleKey { event, ..key }).or_default() += increase;
            }
        }
        self.stacks[stack].frames.iter().filter_map(|&frame| self.frames[frame as usize].object())
    }

    /// Begins the next slice of time. The length of slices doubles when there would be too many.
    pub fn next_slice(&mut self) {
        if self.slicing.next() {
            let samples = std::mem::take(&mut self.samples);
            for (key, amount) in samples {
                *self.samples.entry(SampleKey { slice: key.slice / 2, ..key }).or_default() += amount;
            }
        }
    }

    /// Scales the weights of an event to the time that it was enabled, where it had a counter for a part of it.
    pub fn scale(&mut self, event: EventId, counted: Counted) {
        if counted.running_ns == counted.enabled_ns {
            return;
        }
        for (_, amount) in self.samples.iter_mut().filter(|(key, _)| key.event == event) {
            amount.weight = Counted { value: amount.weight, ..counted }.scaled();
        }
    }

    /// Slices so far, the present one included.
    #[must_use]
    pub fn slices(&self) -> u32 {
        self.slicing.current() + 1
    }

    /// Tasks, by index.
    #[must_use]
    pub fn tasks(&self) -> &IndexSet<Task> {
        &self.tasks
    }

    /// Stacks, by index.
    #[must_use]
    pub fn stacks(&self) -> &IndexSet<RawStack> {
        &self.stacks
    }

    /// Frames, by index.
    #[must_use]
    pub fn frames(&self) -> &IndexSet<RawFrame> {
        &self.frames
    }

    /// The objects of all frames, most of them many times.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.frames.iter().filter_map(|frame| frame.object())
    }

    /// Samples.
    pub fn samples(&self) -> impl Iterator<Item = (&SampleKey, &Amount)> {
        self.samples.iter()
    }

    /// Samples of one event.
    #[must_use]
    pub fn total(&self, event: EventId) -> Amount {
        self.samples.iter().filter(|(key, _)| key.event == event).map(|(_, amount)| *amount).sum()
    }
}

/// Most slices of a recording: enough for the statistics, and a bound for the memory.
const MAX_SLICES: u32 = 512;

/// Drains by slice.
#[derive(Debug)]
struct Slicing {
    /// Drains in a slice, a power of two.
    length: u32,
    drains: u32,
}

impl Default for Slicing {
    fn default() -> Self {
        Self { length: 1, drains: 0 }
    }
}

impl Slicing {
    fn current(&self) -> u32 {
        self.drains / self.length
    }

    /// Counts a drain; whether two slices each are now one.
    fn next(&mut self) -> bool {
        self.drains += 1;
        let too_many = self.current() >= MAX_SLICES;
        if too_many {
            self.length *= 2;
        }
        too_many
    }
}

fn normalise(
    sample: &RawSample<'_>,
    history: &History,
    jit_code: &mut JitCode,
) -> impl Iterator<Item = RawFrame> {
    let kernel = sample.kernel.iter().enumerate().map(|(depth, address)| {
        RawFrame::Kernel(KernelAddress(address.0.saturating_sub((depth > 0).into())))
    });
    let user = sample.user.iter().map(|frame| match *frame {
        UserFrame::Object { object, offset } => {
            let object = ObjectId::from_number(object);
            // The kernel side may not know yet that the object was replaced by another at its address.
            if history.maps(sample.tgid, object, sample.first) {
                RawFrame::User { object, offset: FileOffset(offset) }
            } else {
                RawFrame::UnknownUser
            }
        }
        UserFrame::Address(address) => {
            let address = UserAddress(address);
            match history.locate(sample.tgid, address, sample.first) {
                Location::Object { object, offset } => RawFrame::User { object, offset },
                Location::Anonymous => {
                    let tgid = sample.tgid;
                    match jit_code.find(tgid, address, sample.first) {
                        JitFrame::Named(name) => RawFrame::Jit { tgid, address, name },
                        JitFrame::Unnamed(time) => RawFrame::Anonymous { tgid, address, time },
                    }
                }
                Location::Unknown => RawFrame::UnknownUser,
            }
        }
    });
    kernel.chain(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stay_few_and_of_equal_length() {
        let mut slicing = Slicing::default();
        let mut doubled = 0;
        for drain in 1..=5000 {
            doubled += u32::from(slicing.next());
            assert!(slicing.current() < MAX_SLICES, "at drain {drain}");
            assert!(drain < 1000 || slicing.current() >= MAX_SLICES / 2, "at drain {drain}");
        }
        assert_eq!((doubled, slicing.length), (4, 16));
    }
}
