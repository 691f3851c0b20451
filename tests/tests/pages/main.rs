//! Outputs that people look at, opened by what opens them: `cargo xtask test`.

mod firefox;
mod readers;
mod report;
mod speedscope;
