//! The file for Speedscope in Speedscope.

use anyhow::Result;

use crate::readers::{Readers, record};

#[test]
fn speedscope_opens_it() -> Result<()> {
    let Some(readers) = Readers::find("speedscope::speedscope_opens_it")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.speedscope.json");
    record(&file)?;
    // The first of three events is shown; its table begins with the function that most time is spent in.
    readers.judge("speedscope.mjs", &file, &["cpu-clock (time) (1/3)", "cpu_time::mix"])
}
