//! The profile with names: what outputs are made of.

use std::sync::Arc;

use indexmap::IndexSet;

use super::header::Header;

/// A function of an object. Functions of one name in two objects are two functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; `[object+0xaddress]` or `[unknown]` where there is none.
    pub name: Arc<str>,
    /// Name of the object, of the kernel module, or `[kernel]`.
    pub object: Arc<str>,
}

/// A function in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// Where its code runs.
    pub kind: FrameKind,
}

/// Where the code of a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// In a process.
    User,
    /// In a process, as part of the function below it.
    Inlined,
    /// In the kernel.
    Kernel,
}

/// A thread under one name: a thread that changes its name is several tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// Command name of the thread.
    pub comm: Arc<str>,
}

/// Samples of one task with one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The task.
    pub task: TaskId,
    /// The stack.
    pub stack: StackId,
    /// Number of samples.
    pub samples: u64,
    /// Sum of their periods, in the event's unit.
    pub weight: u64,
}

/// Index of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Index of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Index of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// Index of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A recording with its names, and the header that says how far it can be trusted.
///
/// All ids are indices of this profile; the accessors panic on those of another.
#[derive(Debug)]
pub struct Profile {
    /// What was recorded, and what is missing.
    pub header: Header,
    /// Functions, by [`FunctionId`].
    pub functions: IndexSet<Function>,
    /// Frames, by [`FrameId`].
    pub frames: IndexSet<Frame>,
    /// Stacks, by [`StackId`]; outermost frame first.
    pub stacks: IndexSet<Box<[FrameId]>>,
    /// Tasks, by [`TaskId`].
    pub tasks: IndexSet<Task>,
    /// Samples.
    pub samples: Vec<Sample>,
}

impl Profile {
    /// A function.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames[id.0 as usize]
    }

    /// The frames of a stack, outermost first.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[FrameId] {
        &self.stacks[id.0 as usize]
    }

    /// A task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.0 as usize]
    }
}
