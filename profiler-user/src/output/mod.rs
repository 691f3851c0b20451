//! Outputs: one file a format. They write to what they are given and do no other I/O; [`file`] puts the bytes in place.

mod columns;
pub mod file;
mod firefox;
mod folded;
mod format;
mod header;
mod html;
mod json;
mod neighbours;
mod pprof;
mod speedscope;
mod svg;
mod table;
mod text;
mod time_order;

pub use folded::Weight;
pub use format::{Format, UnknownFormat};
pub use header::write_header;
pub use neighbours::{write_neighbours, write_neighbours_json};
pub use table::{TableOptions, write_table};
pub use text::{counted, thousands};

use std::io::{self, Write};

use crate::profile::{By, EventId, Profile};

/// What is shown of a profile where a format leaves a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What the numbers of stacks are.
    pub weight: Weight,
    /// What the rows of tables stand for.
    pub by: By,
}

/// Writes a profile in this format.
///
/// # Errors
///
/// Those of `to`, and what the format's library refuses.
pub fn write(profile: &Profile, format: Format, view: View, to: &mut dyn Write) -> io::Result<()> {
    let View { weight, by } = view;
    match format {
        Format::Folded => folded::write(profile, EventId::MAIN, weight, to),
        Format::Svg => svg::write(profile, weight, to),
        Format::Html => html::write(profile, to),
        Format::Json => json::write(profile, by, to),
        Format::Pprof => pprof::write(profile, to),
        Format::Firefox => firefox::write(profile, to),
        Format::Speedscope => speedscope::write(profile, weight, to),
    }
}
