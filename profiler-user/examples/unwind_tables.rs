//! Size and compile time of the unwind tables of files: `cargo run --release --example unwind_tables -- FILE…`

use std::fs::File;
use std::time::Instant;

use anyhow::Context as _;
use bpfprof::unwind::compile;

fn main() -> anyhow::Result<()> {
    println!("{:>10} {:>8} {:>12} {:>9} file", "rows", "pages", "bytes", "ms");
    for name in std::env::args().skip(1) {
        let file = File::open(&name).with_context(|| format!("cannot open {name}"))?;
        let begun = Instant::now();
        let table = compile(&file).with_context(|| format!("{name} has no table"))?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        let (rows, pages) = (table.row_count(), table.pages().len());
        println!("{rows:>10} {pages:>8} {:>12} {took:>9.1} {name}", 8 * (rows + pages));
    }
    Ok(())
}
