//! Perf events: from the name a user writes to an event opened on one CPU, or to the reason why it cannot be.
//!
//! - [`EventSpec`] is one event in perf's spelling; [`Rate`] and [`Precise`] say how it is sampled;
//!   [`EventList`] is several, with the named sets.
//! - [`find_precise`] finds the precise level once, [`find_counting`] what can be counted; [`SamplingEvent`] and [`CountingEvent`] are the event opened on one CPU.
//! - [`fitting`] says which events a CPU counts at the same time.
//! - [`Refusal`] turns a failed open and the [`HostFacts`] into a cause and a remedy.
//! - [`catalogue`] lists the events that have names here.
//! - [`cpus`] reads CPU lists, the kernel's and the user's.

pub mod catalogue;
pub mod cpus;

mod advice;
mod attribute;
mod breakpoint;
mod cache;
mod counted;
mod counting;
mod encoding;
mod event_list;
mod event_set;
mod fitting;
mod host_facts;
mod modifiers;
mod names;
mod open_error;
mod parse_error;
mod placement;
mod pmu;
mod pmu_event;
mod pmu_format;
mod precise;
mod presence;
mod probe;
mod rate;
mod refusal;
mod sampling;
mod spec;
mod system_root;
mod tracepoint;

pub use counted::Counted;
pub use counting::CountingEvent;
pub use cpus::CpuId;
pub use event_list::{EventList, EventListError, ListedEvent};
pub use event_set::EventSet;
pub use fitting::fitting;
pub use host_facts::HostFacts;
pub use modifiers::Modifiers;
pub use open_error::{Failure, OpenError, Purpose};
pub use parse_error::ParseEventError;
pub use placement::{cpus_of, trial_cpus};
pub use pmu_event::PmuEvent;
pub use precise::Precise;
pub use presence::open_for_this_thread;
pub use probe::{find_counting, find_precise};
pub use rate::Rate;
pub use refusal::Refusal;
pub use sampling::{Notices, SamplingEvent};
pub use spec::{EventKind, EventSpec};
pub use tracepoint::Tracepoint;
