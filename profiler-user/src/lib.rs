//! bpfprof: a sampling profiler for Linux that says which functions burn the CPU, and why.
//!
//! Data flows one way: [`events`] → [`kernel`] → [`record`] (drain) → [`profile`] → [`output`]; [`processes`] and [`symbols`] say what
//! addresses mean. See `ARCHITECTURE.md`.

mod bounded_file;
pub mod cache_folder;
pub mod cli;
pub mod diff;
pub mod events;
mod function_parts;
pub mod help;
pub mod kernel;
mod linkage_sections;
pub mod list;
pub mod output;
mod pprof;
mod precedence;
mod present;
mod printable;
mod privileges;
pub mod processes;
pub mod profile;
pub mod record;
pub mod report;
pub mod saved;
pub mod say;
mod suggest;
pub mod symbols;
pub mod types;
pub mod unwind;
