//! What was sampled, as addresses: filled at each drain.

use std::collections::HashMap;

use indexmap::IndexSet;
use profiler_common::frame::UserFrame;
use profiler_common::stack::StackEnd;

use super::model::Task;
use crate::kernel::{Amount, RawSample};
use crate::processes::{History, Location, ObjectId};
use crate::types::{FileOffset, KernelAddress, Tgid, UserAddress};

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
    },
    /// In user memory of which nothing is known.
    UnknownUser,
    /// In the kernel.
    Kernel(KernelAddress),
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// Kernel frames, then user frames.
    pub frames: Box<[RawFrame]>,
    /// How its user side ended.
    pub end: StackEnd,
}

/// What tells samples apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Index of the task.
    pub task: u32,
    /// Index of the stack.
    pub stack: u32,
    /// Index of the event.
    pub event: u16,
}

/// All samples of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    tasks: IndexSet<Task>,
    stacks: IndexSet<RawStack>,
    samples: HashMap<SampleKey, Amount>,
}

impl Recording {
    /// Adds what a drain brought.
    pub fn add(&mut self, sample: &RawSample<'_>, history: &History) {
        let task = Task {
            process: sample.tgid.0,
            thread: sample.tid.0,
            comm: String::from_utf8_lossy(sample.comm).into(),
        };
        let stack = RawStack { frames: normalise(sample, history), end: sample.end };
        let key = SampleKey {
            task: index(self.tasks.insert_full(task).0),
            stack: index(self.stacks.insert_full(stack).0),
            event: sample.event,
        };
        *self.samples.entry(key).or_default() += Amount { samples: sample.samples, weight: sample.weight };
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

    /// Samples.
    pub fn samples(&self) -> impl Iterator<Item = (&SampleKey, &Amount)> {
        self.samples.iter()
    }

    /// Number of samples.
    #[must_use]
    pub fn total(&self) -> Amount {
        self.samples.values().copied().sum()
    }
}

fn normalise(sample: &RawSample<'_>, history: &History) -> Box<[RawFrame]> {
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
                Location::Anonymous => RawFrame::Anonymous { tgid: sample.tgid, address },
                Location::Unknown => RawFrame::UnknownUser,
            }
        }
    });
    kernel.chain(user).collect()
}

/// Indices fit: 2³² distinct stacks do not fit into memory.
fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
