//! The default event, and its label where it stands in for another.

use anyhow::Result;
use bpfprof_tests::{Bpfprof, Report, host};

#[test]
fn the_default_event_is_cycles_or_says_why_not() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::new(["-o", "-"]).output(&json).workload("spin", &["alpha", "0.5"]).succeed()?;
    let event = Report::read(&json)?.header.event;
    if host::has_pmu() {
        assert!(event.name.starts_with("cycles"), "{event:?}");
        assert_eq!(event.fallback, None);
    } else {
        assert_eq!((event.name.as_str(), event.unit.as_str()), ("cpu-clock", "ns"));
        assert!(event.fallback.is_some_and(|why| why.to_lowercase().contains("pmu")));
        let label = run.stderr.lines().find(|line| line.contains("cpu-clock") && line.contains("cycles"));
        assert!(label.is_some(), "stderr does not say that cpu-clock stands in for cycles: {}", run.stderr);
    }
    assert!(run.folded()?.weight_of("spin_alpha") > 0);
    Ok(())
}

#[test]
fn cycles_asked_for_by_name_are_refused_without_a_pmu() -> Result<()> {
    if host::has_pmu() {
        let test = "fallback::cycles_asked_for_by_name_are_refused_without_a_pmu";
        return host::skip(test, "this machine has a PMU");
    }
    let folder = tempfile::tempdir()?;
    let marker = folder.path().join("ran");
    let run = Bpfprof::new(["-e", "cycles", "--", "touch"]).args([&marker]).run()?;
    run.expect_refusal(1, &["cycles", "PMU", "-e cpu-clock"])?;
    assert!(!marker.exists(), "the command ran");
    Ok(())
}

#[test]
fn an_event_asked_for_by_name_is_no_fallback() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    Bpfprof::clock(["-F", "499"]).output(&json).workload("spin", &["alpha", "0.3"]).succeed()?;
    let event = Report::read(&json)?.header.event;
    assert_eq!((event.name.as_str(), event.fallback), ("cpu-clock", None));
    assert!(event.rate.contains("499"), "{}", event.rate);
    Ok(())
}
