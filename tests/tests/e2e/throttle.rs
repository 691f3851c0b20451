//! Rates that the kernel does not keep.

use anyhow::{Result, ensure};
use bpfprof_tests::restore::{MAX_SAMPLE_RATE, Setting};
use bpfprof_tests::{Bpfprof, Report, host};

#[test]
fn a_rate_that_the_kernel_throttles_is_reported() -> Result<()> {
    let Some(rate) = limit("200", "a_rate_that_the_kernel_throttles_is_reported")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    // 10,000 samples a second, of which the kernel lets through one or two a tick.
    let run = Bpfprof::clock(["-c", "100000"]).output(&json).workload("spin", &["alpha", "1"]).succeed()?;
    drop(rate);
    let report = Report::read(&json)?;
    let seen = report.function("spin_alpha")?.total.weight;
    assert!(seen < 500_000_000, "the kernel throttled nothing: {seen} ns of a second came through");
    let header = report.header;
    assert!(header.lost.throttles > 0, "{header:?}");
    assert!(header.lost.undelivered.is_some_and(|share| share > 0.2), "{header:?}");
    ensure!(run.stderr.to_lowercase().contains("throttle"), "stderr does not say it: {}", run.stderr);
    Ok(())
}

#[test]
fn a_frequency_above_the_limit_is_refused_with_both_numbers() -> Result<()> {
    let Some(rate) = limit("1000", "a_frequency_above_the_limit_is_refused_with_both_numbers")? else {
        return Ok(());
    };
    let run = Bpfprof::clock(["-F", "5000", "--", "true"]).run();
    drop(rate);
    run?.expect_refusal(1, &["5000", "1000", "perf_event_max_sample_rate"])
}

/// Lowers the rate that the kernel takes; `None` where it cannot be changed.
fn limit(hertz: &str, test: &str) -> Result<Option<Setting>> {
    let rate = Setting::of(MAX_SAMPLE_RATE)?;
    if let Err(error) = rate.set(hertz) {
        // The kernel refuses it while perf_cpu_time_max_percent is 0 or 100.
        host::skip(&format!("throttle::{test}"), &format!("{error:#}"))?;
        return Ok(None);
    }
    Ok(Some(rate))
}
