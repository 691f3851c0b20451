//! Two profiles side by side: table, JSON, differential flame graph.

mod json;
mod svg;
mod table;

pub use json::write_diff_json;
pub use svg::write_diff_svg;
pub use table::write_diff_table;
