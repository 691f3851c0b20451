//! Tracepoints: counted beside another event, never sampled.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use bpfprof_tests::{Bpfprof, host};
use serde_json::Value;

/// bpfprof where tracefs is mounted, in a mount namespace of its own. `None` where that cannot be.
fn with_tracefs() -> Option<Bpfprof> {
    const MOUNT: &str = "mount -t tracefs tracefs /sys/kernel/tracing";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]);
        command
    };
    let mounts =
        unshare(&format!("{MOUNT} && test -e /sys/kernel/tracing/events/sched/sched_switch/id")).output();
    if !mounts.is_ok_and(|mounts| mounts.status.success()) {
        return None;
    }
    let mut command = unshare(&format!(r#"{MOUNT} && exec "$@""#));
    command.arg(host::bpfprof());
    Some(Bpfprof::through(command))
}

fn no_tracefs(test: &str) -> Result<()> {
    host::skip(test, "tracefs cannot be mounted in a mount namespace of its own")
}

fn counter(json: &Path, name: &str) -> Result<Value> {
    let report: Value = serde_json::from_str(&fs::read_to_string(json)?)?;
    let counters = report["header"]["counters"].as_array().context("no counters")?;
    counters.iter().find(|counter| counter["name"] == name).cloned().with_context(|| format!("no {name}"))
}

#[test]
fn hits_are_counted_beside_a_clock() -> Result<()> {
    let Some(bpfprof) = with_tracefs() else {
        return no_tracefs("tracepoint::hits_are_counted_beside_a_clock");
    };
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let counters = ["--counters", "{sched:sched_switch,cs}", "--attribution", "delta"];
    // Each sleep gives the CPU away.
    let script = "i=0; while [ $i -lt 50 ]; do sleep 0.01; i=$((i+1)); done; exec spin alpha 0.3";
    bpfprof.args(["-e", "cpu-clock"]).args(counters).output(&json).shell(script).succeed()?;
    let hits = counter(&json, "sched:sched_switch")?["counted"].as_u64().context("no count")?;
    let switches = counter(&json, "context-switches")?["counted"].as_u64().context("no count")?;
    assert!(hits >= 50, "{hits} hits");
    // The two count the same, but are neither switched on nor off at the same moment.
    assert!(hits < 2 * switches && switches < 2 * hits, "{hits} hits, {switches} switches");
    Ok(())
}

#[test]
fn it_is_listed_as_counted_and_refused_as_the_event_to_sample() -> Result<()> {
    const TEST: &str = "tracepoint::it_is_listed_as_counted_and_refused_as_the_event_to_sample";
    let (Some(list), Some(record)) = (with_tracefs(), with_tracefs()) else { return no_tracefs(TEST) };
    let list = list.args(["list", "sched:sched_switch"]).succeed()?;
    let line = list.stdout.lines().find(|line| line.trim_start().starts_with("sched:sched_switch"));
    assert!(line.is_some_and(|line| line.contains(" count ")), "{}", list.stdout);
    record.args(["-e", "sched:sched_switch", "--", "true"]).run()?.expect_refusal(
        1,
        &["cannot sample `sched:sched_switch`", "runs no sampling program at a tracepoint", "--counters"],
    )
}
