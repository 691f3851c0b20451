//! Outputs: one file a format. They write to what they are given and do no other I/O; [`file`] puts the bytes in place.

pub mod file;
mod folded;
mod format;
mod header;
mod json;
mod pprof;
mod svg;
mod table;
mod text;

pub use folded::Weight;
pub use format::{Format, UnknownFormat};
pub use header::write_header;
pub use table::{TableOptions, write_table};
pub use text::{counted, thousands};

use std::io::{self, Write};

use crate::profile::{EventId, Profile};

/// Writes a profile in this format.
///
/// # Errors
///
/// Those of `to`, and what the format's library refuses.
pub fn write(profile: &Profile, format: Format, weight: Weight, to: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Folded => folded::write(profile, EventId::MAIN, weight, to),
        Format::Svg => svg::write(profile, weight, to),
        Format::Json => json::write(profile, to),
        Format::Pprof => pprof::write(profile, to),
    }
}
