//! The profile: first as addresses ([`Recording`]), then as names ([`Profile`]). Pure data, no I/O.

pub mod diff;
mod filter;
mod header;
mod inlines;
mod measured;
pub mod metrics;
mod model;
mod neighbours;
mod numbering;
mod own_code;
mod recording;
mod renaming;
mod slices;
mod stack_state;
pub mod statistics;
mod sum;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub use filter::Filter;
pub use header::{
    Attribution, EventInfo, Header, LostInfo, MissingCounter, NamesInfo, ObjectLack, Slices, StacksInfo,
};
pub use inlines::{Inlines, Origin};
pub use model::{
    EventId, Frame, FrameId, FrameKind, Function, FunctionId, Line, LineId, Mapping, MappingId, Profile,
    Sample, StackId, Task, TaskId,
};
pub use neighbours::{NameError, Neighbour, Neighbours, named};
pub use recording::{RawFrame, RawStack, Recording, SampleKey};
pub use stack_state::{CutReason, GuessReason, StackState};
pub use sum::Sum;
pub use table::{By, Label, Repeats, Row, RowRepeat, Table};
