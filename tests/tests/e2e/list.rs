//! `bpfprof list`: its answers are the kernel's, and hold for a recording.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, host};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct List {
    schema: u32,
    events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
struct Event {
    name: String,
    aliases: Vec<String>,
    class: String,
    unit: String,
    opens: String,
    cause: Option<String>,
}

fn listed(arguments: &[&str]) -> Result<Vec<Event>> {
    let run = Bpfprof::new(["list", "--json"]).args(arguments).succeed()?;
    let list: List = serde_json::from_str(&run.stdout).context("reading the JSON")?;
    assert_eq!(list.schema, 1);
    Ok(list.events)
}

fn find<'a>(events: &'a [Event], name: &str) -> Result<&'a Event> {
    events.iter().find(|event| event.name == name).with_context(|| format!("{name} is not listed"))
}

#[test]
fn what_every_kernel_has_opens() -> Result<()> {
    let events = listed(&[])?;
    for (name, unit) in [("cpu-clock", "ns"), ("page-faults", "faults"), ("mem:ADDRESS:x", "executions")] {
        let event = find(&events, name)?;
        assert_eq!((event.opens.as_str(), event.unit.as_str()), ("yes", unit), "{event:?}");
    }
    assert_eq!(find(&events, "page-faults")?.aliases, ["faults"]);
    Ok(())
}

#[test]
fn the_answers_are_those_of_a_recording() -> Result<()> {
    let events = listed(&[])?;
    for name in ["cycles", "LLC-load-misses", "page-faults", "context-switches"] {
        let event = find(&events, name)?;
        let this_process = std::process::id().to_string();
        let run = Bpfprof::new(["-e", name, "-p", &this_process, "-d", "300ms", "-o", "-"]).run()?;
        match event.opens.as_str() {
            // This process may not have raised it in this time.
            "yes" => ensure!(!run.stderr.contains("cannot sample"), "{name}: {}", run.stderr),
            _ => {
                let cause = event.cause.as_deref().context("no cause")?;
                run.expect_refusal(1, &[&format!("cannot sample `{name}`"), cause])?;
            }
        }
    }
    Ok(())
}

#[test]
fn without_a_pmu_the_cause_is_said_once_for_each_kind() -> Result<()> {
    if host::has_pmu() {
        return host::skip(
            "list::without_a_pmu_the_cause_is_said_once_for_each_kind",
            "this machine has a PMU",
        );
    }
    let run = Bpfprof::new(["list", "branch*"]).succeed()?;
    // Generic events and cache events.
    assert_eq!(run.stdout.matches("exposes no hardware PMU").count(), 2, "{}", run.stdout);
    assert!(run.stdout.contains("enable the virtual PMU"), "{}", run.stdout);
    let lines: Vec<&str> = run.stdout.lines().filter(|line| line.contains("  no   ")).collect();
    assert_eq!(lines.len(), 4, "{}", run.stdout);
    Ok(())
}

#[test]
fn a_pattern_narrows_whatever_its_case() -> Result<()> {
    let events = listed(&["llc"])?;
    assert_eq!(events.len(), 6);
    assert!(
        events.iter().all(|event| event.name.starts_with("LLC-") && event.class == "cache"),
        "{events:?}"
    );
    assert_eq!(listed(&["L1-?cache-load-misses"])?.len(), 2);
    assert_eq!(listed(&["faults"])?.len(), 5);
    Ok(())
}

#[test]
fn what_matches_nothing_is_said() -> Result<()> {
    Bpfprof::new(["list", "no-such-event"])
        .run()?
        .expect_refusal(1, &["no event here matches `no-such-event`"])
}

#[test]
fn a_plain_user_is_told_what_root_would_open() -> Result<()> {
    const TEST: &str = "list::a_plain_user_is_told_what_root_would_open";
    if Command::new("setpriv").arg("--version").output().is_err() {
        return host::skip(TEST, "`setpriv` (package util-linux) is not installed");
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")?;
    if paranoid.trim().parse::<i32>()? < 1 {
        return host::skip(TEST, "kernel.perf_event_paranoid lets everyone watch a CPU here");
    }
    // The build folder may be closed to others.
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let copy = folder.path().join("bpfprof");
    fs::copy(host::bpfprof(), &copy).context("copying bpfprof")?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    let run = Bpfprof::through(command).args(["list", "page-faults"]).succeed()?;
    let line = run.stdout.lines().find(|line| line.trim_start().starts_with("page-faults"));
    assert!(line.is_some_and(|line| line.contains(" root ")), "{}", run.stdout);
    for word in ["CAP_PERFMON", "sudo"] {
        assert!(run.stderr.contains(word), "stderr does not say {word}: {}", run.stderr);
    }
    Ok(())
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", r#""$@" | true"#, "sh"]).arg(host::bpfprof()).arg("list");
    let run = Bpfprof::through(command).succeed()?;
    assert_eq!(run.stderr, "");
    Ok(())
}

#[test]
fn events_that_this_machine_lacks_are_refused_with_what_it_has() -> Result<()> {
    let refused = |event: &str, words: &[&str]| {
        Bpfprof::new(["-e", event, "--", "true"]).run()?.expect_refusal(1, words)
    };
    // Every kernel shows its own events as those of a PMU.
    refused("no_such_pmu/event=1/", &["this machine has no PMU `no_such_pmu`", "software"])?;
    refused("software/event=1/", &["PMU `software` has neither a term nor an event `event`"])?;
    refused("no_such:tracepoint", &["cannot sample `no_such:tracepoint`", "trac"])
}

#[test]
fn an_event_of_a_pmu_is_sampled_by_its_terms() -> Result<()> {
    // PERF_COUNT_SW_CPU_CLOCK is 0: the clock by another name.
    let run = Bpfprof::new(["-e", "software/config=0,name=clock/u", "-F", "499"])
        .workload("spin", &["alpha", "0.5"])
        .succeed()?;
    assert!(run.folded()?.weight_of("spin_alpha") > 0);
    Ok(())
}
