//! The profile with names: what outputs are made of.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexSet;

use super::header::Header;
use crate::kernel::Amount;
use crate::printable::printable_name;

/// A function of an object. Functions of one name in two objects are two functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; `[object+0xaddress]` or `[unknown]` where there is none.
    pub name: Arc<str>,
    /// Name of the object, of the kernel module, or `[kernel]`.
    pub object: Arc<str>,
}

/// A function in a stack, at one place of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// Where its code runs.
    pub kind: FrameKind,
    /// The object that the code lies in.
    pub mapping: MappingId,
    /// Place in the object's file in bytes, in the kernel from the beginning of its code, in code without a file an absolute address; 0 where
    /// it is not known. That of
    /// a caller is of the last byte of its call. Inlined frames have the address of the function that they are part of.
    pub address: u64,
    /// Source line; `None` where it is not known.
    pub line: Option<LineId>,
}

/// An object with code: a file, the kernel, or code made at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// Name as functions carry it in [`Function::object`].
    pub name: Arc<str>,
    /// Its path; the name again where there is none.
    pub path: Arc<str>,
    /// Build id in hexadecimal; empty where there is none.
    pub build_id: Arc<str>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Path of the file as the debug information has it.
    pub file: Arc<str>,
    /// Number of the line, from 1.
    pub number: u32,
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
    /// Path of its process's cgroup in the version 2 hierarchy, when the process began its program; empty where it is not known.
    pub cgroup: Arc<str>,
}

impl fmt::Display for Line {
    /// `FILE:NUMBER`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

impl fmt::Display for Task {
    /// `COMM (THREAD)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.comm, self.thread)
    }
}

/// Samples of one event in one task with one stack in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// The task.
    pub task: TaskId,
    /// The stack.
    pub stack: StackId,
    /// Index of the slice of time, below the header's number of slices.
    pub slice: u32,
    /// The event.
    pub event: EventId,
    /// Number of samples; with `delta` attribution of readings that found the event's count increased.
    pub samples: u64,
    /// What they stand for, in the event's unit: the sum of their periods, or of the increases.
    pub weight: u64,
}

impl Sample {
    /// Samples and weight.
    #[must_use]
    pub fn amount(&self) -> Amount {
        Amount { samples: self.samples, weight: self.weight }
    }
}

/// Index of an event: 0 is the sampled one, then the counters in the order of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u16);

impl EventId {
    /// The event that was sampled.
    pub const MAIN: Self = Self(0);
}

/// Index of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Index of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Index of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u32);

/// Index of a source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

/// Index of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// Index of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A recording with its names, and the header that says how far it can be trusted.
///
/// All ids are indices of this profile; the accessors panic on those of another.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What was recorded, and what is missing.
    pub header: Header,
    /// Objects, by [`MappingId`].
    pub mappings: IndexSet<Mapping>,
    /// Source lines, by [`LineId`].
    pub lines: IndexSet<Line>,
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
    /// Samples of one event.
    pub fn samples_of(&self, event: EventId) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.event == event)
    }

    /// Adds a frame, or finds it.
    pub fn add_frame(&mut self, frame: Frame) -> FrameId {
        FrameId(index(self.frames.insert_full(frame).0))
    }

    /// Adds a function, or finds it. Its name is made printable.
    pub fn add_function(&mut self, mut function: Function) -> FunctionId {
        make_printable(&mut function.name);
        make_printable(&mut function.object);
        FunctionId(index(self.functions.insert_full(function).0))
    }

    /// Adds an object, or finds it. Its name is made printable.
    pub fn add_mapping(&mut self, mut mapping: Mapping) -> MappingId {
        make_printable(&mut mapping.name);
        make_printable(&mut mapping.path);
        MappingId(index(self.mappings.insert_full(mapping).0))
    }

    /// Adds a source line, or finds it. The path of its file is made printable.
    pub fn add_line(&mut self, mut line: Line) -> LineId {
        make_printable(&mut line.file);
        LineId(index(self.lines.insert_full(line).0))
    }

    /// Adds a stack, outermost frame first, or finds it.
    pub fn add_stack(&mut self, frames: impl Into<Box<[FrameId]>>) -> StackId {
        StackId(index(self.stacks.insert_full(frames.into()).0))
    }

    /// Adds a task, or finds it. Its name is made printable.
    pub fn add_task(&mut self, mut task: Task) -> TaskId {
        make_printable(&mut task.comm);
        make_printable(&mut task.cgroup);
        TaskId(index(self.tasks.insert_full(task).0))
    }

    /// An object.
    #[must_use]
    pub fn mapping(&self, id: MappingId) -> &Mapping {
        &self.mappings[id.0 as usize]
    }

    /// A source line.
    #[must_use]
    pub fn line(&self, id: LineId) -> &Line {
        &self.lines[id.0 as usize]
    }

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

fn make_printable(name: &mut Arc<str>) {
    if let Cow::Owned(printable) = printable_name(name) {
        *name = printable.into();
    }
}

/// Indices fit: 2³² distinct entries do not fit into memory.
pub(super) fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
