//! Shares and times against the clocks of the workload itself.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use bpfprof_tests::truth::{cpu_time_holds, share_holds};
use bpfprof_tests::{Bpfprof, Folded, Report};

#[test]
fn shares_lie_in_their_interval_and_weights_are_cpu_time() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::clock(["-o"])
        .args([&json])
        .output(&folded)
        .workload("shares", &["--seconds", "4"])
        .succeed()?;

    // The outputs have names, so all of stdout is the workload's.
    let truth = nanoseconds_by_name(&run.stdout)?;
    let all = truth["all"] as f64;
    let report = Report::read(&json)?;
    for name in ["work_one", "work_two", "work_three"] {
        let share = report.function(name)?.total.share.with_context(|| format!("{name} has no share"))?;
        share_holds(name, share, truth[name] as f64 / all)?;
    }
    let weight = Folded::read(&folded)?.weight();
    assert_eq!(weight, report.header.weight, "the outputs of one run tell the same");
    let used = Duration::from_nanos(truth["all"]);
    cpu_time_holds("all of it", weight, used)
}

fn nanoseconds_by_name(text: &str) -> Result<HashMap<String, u64>> {
    let lines = text.lines().map(|line| {
        let (name, time) = line.split_once(' ').with_context(|| format!("not from the workload: {line}"))?;
        Ok((name.to_owned(), time.parse()?))
    });
    lines.collect()
}
