//! Process history: which object lay where in which process, at every moment of the recording, also after the process is gone.

mod address_space;
mod cgroups;
mod content;
mod directory;
mod history;
mod identity;
mod jit;
mod object;
mod objects;
mod opening;
mod paths;
mod root;
mod scan;
mod unreadable;

pub use cgroups::Cgroups;
pub use history::{History, Location, Scope};
pub use identity::{FileStamp, build_id};
pub use jit::{JitCode, JitDump, JitFrame, JitName, MAX_LINE, Runtime, entry};
pub use object::{BackingFile, Object};
pub use objects::{ObjectId, Objects};
pub(crate) use paths::short_name;
pub use root::Root;
pub use scan::{descendants, everyone, mapping_at, mappings, process_of_thread};
pub use unreadable::Unreadable;
