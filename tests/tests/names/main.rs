//! Every process that was sampled is known, and its functions have their names: `cargo xtask test`.

mod aliases;
mod debug_files;
mod files;
mod inlined;
mod kinds;
mod namespaces;
mod program;
mod recorded;
mod removed;
mod rows;
mod runtime_code;
mod short_processes;
mod stripped;
