//! Process history: which object lay where in which process, at every moment of the recording, also after the process is gone.

mod history;
mod objects;
mod scan;

pub use history::{History, Location, Scope};
pub use objects::{BackingFile, Object, ObjectId, Objects, Unreadable};
pub use scan::{descendants, everyone, mappings, process_of_thread};
