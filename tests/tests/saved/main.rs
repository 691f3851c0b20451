//! Saved profiles: what is written is read again by bpfprof and by the tools that pprof files are made for: `cargo xtask test`.

mod comparing;
mod go_pprof;
mod other_tools;
mod report;
