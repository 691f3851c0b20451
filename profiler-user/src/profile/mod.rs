//! The profile: first as addresses ([`Recording`]), then as names ([`Profile`]). Pure data, no I/O.

mod header;
mod model;
mod recording;
mod stack_state;
pub mod statistics;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub use header::{EventInfo, Header, LostInfo, NamesInfo, ObjectWithoutSymbols, StacksInfo};
pub use model::{Frame, FrameId, FrameKind, Function, FunctionId, Profile, Sample, StackId, Task, TaskId};
pub use recording::{RawFrame, RawStack, Recording, SampleKey};
pub use stack_state::{CutReason, StackState};
pub use table::{FunctionRow, FunctionTable};
