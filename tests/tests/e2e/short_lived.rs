//! Processes of a few milliseconds.

use std::time::Duration;

use anyhow::Result;
use bpfprof_tests::folded::{is_kernel, is_named};
use bpfprof_tests::truth::function_time_holds;
use bpfprof_tests::{Bpfprof, Report};

#[test]
fn each_is_found_with_its_names() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let script = "i=0; while [ $i -lt 200 ]; do spin alpha 0.005; i=$((i+1)); done";
    let folded = Bpfprof::clock(["-o", "-"]).output(&json).shell(script).succeed()?.folded()?;
    function_time_holds(&Report::read(&json)?, "spin_alpha", Duration::from_secs(1))?;
    let of_spin = folded.weight_where(|line| line.comm == "spin" && line.has("spin_alpha"));
    assert_eq!(of_spin, folded.weight_of("spin_alpha"));

    let (mut frames, mut named) = (0, 0);
    for line in folded.lines.iter().filter(|line| line.comm == "spin") {
        let user = line.frames.iter().filter(|frame| !is_kernel(frame));
        for frame in user {
            frames += line.weight;
            named += if is_named(frame) { line.weight } else { 0 };
        }
    }
    assert!(named * 100 >= frames * 95, "{named} of {frames} user frames by weight have names");
    Ok(())
}
