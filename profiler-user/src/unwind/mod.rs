//! Unwind tables: call-frame information of objects, compiled to the rows that the kernel side searches.

mod cache;
mod compile;
mod compressed;
mod debug_frame;
mod elf;
mod linker_code;
mod plt;
mod rules;
mod starts;
mod table;
mod worker;

pub use cache::Cache;
pub use compile::{CompileError, compile};
pub use starts::function_starts;
pub use table::{Page, Table};
pub use worker::{Compiled, Need, News, Worker};
