//! Outputs: one file a format. They write to what they are given and do no other I/O; [`file`] puts the bytes in place.

mod coloring;
mod columns;
mod diff;
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
mod view;

pub use diff::{write_diff_json, write_diff_svg, write_diff_table};
pub use folded::Weight;
pub use format::{Format, UnknownFormat};
pub use header::{Detail, write_header, write_headers};
pub use neighbours::{write_neighbours, write_neighbours_json};
pub use table::{TableOptions, write_table};
pub use text::{counted, thousands};
pub use view::{View, ViewError};

use std::io::{self, Write};

use crate::profile::Profile;

/// Writes a profile in this format.
///
/// # Errors
///
/// Those of `to`, and what the format's library refuses.
pub fn write(profile: &Profile, format: Format, view: &View, to: &mut dyn Write) -> io::Result<()> {
    let event = view.event_in(profile)?;
    match format {
        Format::Folded => folded::write(profile, event, view.weight, to),
        Format::Svg => svg::write(profile, event, view, to),
        Format::Html => html::write(profile, event, view, to),
        Format::Json => json::write(&profile.with_inlines(view.inlines), view.by, to),
        Format::Pprof => pprof::write(profile, to),
        Format::Firefox => firefox::write(profile, event, to),
        Format::Speedscope => speedscope::write(profile, event, view.weight, to),
    }
}
