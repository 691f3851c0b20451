//! Page faults as the event: software events whose number is known.

use anyhow::Result;
use bpfprof_tests::{Bpfprof, Report};

#[test]
fn every_fault_counts_for_the_function_that_touched_the_page() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::new(["-e", "page-faults", "-c", "1"]).output(&json).workload("faults", &["5000"]);
    run.succeed()?;
    let report = Report::read(&json)?;
    let touched = report.function("touch_pages")?.total.weight;
    // A few on top: the function's own code, and the stack.
    assert!((5000..5050).contains(&touched), "{touched} faults in touch_pages");
    let nothing = report.function("touch_nothing").map_or(0, |function| function.total.weight);
    assert!(nothing < 10, "{nothing} faults in touch_nothing");
    assert_eq!(report.header.event.name, "page-faults");
    assert_eq!(report.header.event.fallback, None);
    Ok(())
}
