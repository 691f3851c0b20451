//! The HTML report in Chromium.

use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use bpfprof_tests::Bpfprof;

use crate::readers::{Readers, record};

#[test]
fn a_report_can_be_used() -> Result<()> {
    let Some(readers) = Readers::find("report::a_report_can_be_used")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.html");
    record(&file)?;
    readers.judge("report.mjs", &file, &[])
}

#[test]
fn strange_names_and_deep_stacks_break_nothing() -> Result<()> {
    let Some(readers) = Readers::find("report::strange_names_and_deep_stacks_break_nothing")? else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let (stacks, file) = (folder.path().join("x.folded"), folder.path().join("x.html"));
    let deep: String = (0..500).map(|depth| format!(";f{depth}")).collect();
    let long = "long::".repeat(2000);
    let lines = format!(
        "app;main;</script><script>alert(1)</script> 300\n\
         app;main;<img src=x onerror=alert(2)> 200\n\
         app;main;&amp<b>\"'`${{1}} 100\n\
         app;{long} 100\n\
         <!--<script>{deep} 300\n"
    );
    fs::write(&stacks, lines)?;
    Bpfprof::new([OsStr::new("report"), stacks.as_os_str()]).output(&file).succeed()?;
    readers.judge("strange.mjs", &file, &[])
}
