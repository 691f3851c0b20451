//! Counters beside the sampled event, with events whose number and place are known exactly.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::{Bpfprof, Folded, Report, host};

const PAGES: u64 = 20_000;

/// Faults that a program takes besides: to be loaded, for its stack and its allocator.
const START_UP: u64 = 1000;

#[test]
fn overflow_finds_each_fault_in_the_function_that_touched_the_page() -> Result<()> {
    let (report, folded) = count_faults("overflow")?;
    let touched = folded.weight_where(|line| line.has("touch_pages"));
    ensure!((PAGES..PAGES + START_UP).contains(&touched), "{touched} faults in touch_pages");
    let elsewhere = folded.weight_where(|line| line.has("touch_nothing"));
    ensure!(elsewhere < 100, "{elsewhere} faults in touch_nothing");
    let faults = report.counter("page-faults")?;
    assert_eq!((faults.samples, faults.attribution.as_str()), (faults.weight, "overflow"));
    assert_eq!(folded.weight(), faults.weight);
    require_closure(faults.closure)
}

#[test]
fn delta_accounts_for_each_fault() -> Result<()> {
    let (report, folded) = count_faults("delta")?;
    let faults = report.counter("page-faults")?;
    let all = faults.weight + faults.residual;
    ensure!((PAGES..PAGES + START_UP).contains(&all), "{all} faults");
    assert_eq!(faults.attribution, "delta");
    assert_eq!(folded.weight(), faults.weight);
    // Visits of some milliseconds: what is read in the neighbour is what came since the last sample.
    let touched = folded.weight_where(|line| line.has("touch_pages"));
    ensure!(
        touched as f64 > 0.6 * faults.weight as f64,
        "{touched} of {} faults in touch_pages",
        faults.weight
    );
    require_closure(faults.closure)
}

#[test]
fn switches_leak_nothing_from_one_task_to_another() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    // Both programs share one CPU, and take turns on it every few milliseconds.
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(host::bpfprof());
    let run = Bpfprof::through(command)
        .args(["-e", "cpu-clock", "--counters", "page-faults", "--attribution", "delta"])
        .args(["--folded-event", "page-faults"])
        .output(&json)
        .output(&folded)
        .shell("faults 200000 & spin alpha 2 & wait");
    run.succeed()?;
    let (report, folded) = (Report::read(&json)?, Folded::read(&folded)?);
    let faults = report.counter("page-faults")?;
    let (guilty, beside) = (folded.weight_of_comm("faults"), folded.weight_of_comm("spin"));
    ensure!(
        guilty > 100_000 && guilty + faults.residual > 190_000,
        "{guilty} faults, {} in no function",
        faults.residual
    );
    ensure!(beside < START_UP, "{beside} faults of a program that takes none");
    let samples = report.functions.iter().map(|function| function.own.samples).sum::<u64>();
    assert_eq!(samples, report.header.samples);
    require_closure(faults.closure)
}

#[test]
fn executions_are_counted_exactly_and_in_their_function() -> Result<()> {
    const CALLS: u64 = 3000;
    let Some(program) = CProgram::compile("called")? else {
        return host::skip(
            "counters::executions_are_counted_exactly_and_in_their_function",
            "`cc` or `nm` is not installed",
        );
    };
    let event = program.breakpoint("counted")?;
    for attribution in ["overflow", "delta"] {
        let folder = tempfile::tempdir()?;
        let json = folder.path().join("x.json");
        let run = Bpfprof::clock(["--counters", &event, "--attribution", attribution]).output(&json);
        run.args(["--"]).args([program.path()]).args([CALLS.to_string()]).succeed()?;
        let report = Report::read(&json)?;
        let counter = &report.header.counters[0];
        assert_eq!(counter.weight + counter.residual, CALLS, "{attribution}: {counter:?}");
        if attribution == "overflow" {
            let count = report.function("counted")?.counters.get(&counter.name);
            let count = count.with_context(|| format!("no {} in counted", counter.name))?;
            let exact = Some(CALLS as f64);
            assert_eq!((count.count, count.low, count.high), (CALLS, exact, exact));
            assert_eq!((count.samples, counter.residual), (CALLS, 0));
        }
    }
    Ok(())
}

#[test]
fn ratios_of_functions_come_with_their_interval() -> Result<()> {
    let (report, _) = count_faults("overflow")?;
    let rate = |name: &str| report.function(name).ok()?.metrics.get("faults-per-second").copied().flatten();
    let rates: Vec<_> = report.functions.iter().filter_map(|function| rate(&function.name)).collect();
    ensure!(!rates.is_empty(), "no function has a rate of faults");
    ensure!(rates.iter().all(|rate| rate.low <= rate.value && rate.value <= rate.high), "{rates:?}");
    let none = rate("mix").context("mix takes half of the time, and has no rate")?;
    ensure!(none.low == 0.0, "mix touches no page: {none:?}");
    Ok(())
}

#[test]
fn counters_by_name_are_refused_and_those_of_sets_are_reported() -> Result<()> {
    if host::has_pmu() {
        return host::skip(
            "counters::counters_by_name_are_refused_and_those_of_sets_are_reported",
            "this machine has a PMU",
        );
    }
    let refused = Bpfprof::new(["--counters", "LLC-load-misses", "--", "true"]).run()?;
    assert_eq!(refused.code(), Some(1));
    ensure!(refused.stderr.contains("cannot sample `LLC-load-misses`"), "{}", refused.stderr);
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::new(["--counters", "default"])
        .output(&json)
        .workload("spin", &["alpha", "0.2"])
        .succeed()?;
    let missing = Report::read(&json)?.header.counters_missing;
    let names: Vec<&str> = missing.iter().map(|missing| missing.name.as_str()).collect();
    assert_eq!(names, ["cycles", "instructions", "LLC-load-misses", "branch-misses"]);
    ensure!(missing.iter().all(|missing| !missing.reason.is_empty()), "{missing:?}");
    ensure!(run.stderr.contains("(no IPC, "), "{}", run.stderr);
    let all =
        Bpfprof::new(["--counters", "default", "--verbose"]).workload("spin", &["alpha", "0.2"]).succeed()?;
    ensure!(all.stderr.contains("so that there is no IPC"), "{}", all.stderr);
    Ok(())
}

#[test]
fn what_cannot_be_shown_is_refused_before_anything_runs() -> Result<()> {
    for (option, value, words) in [
        ("--folded-event", "page-faults", "page-faults is not measured here"),
        ("--color-by", "faults-per-second", "needs page-faults"),
        ("--metrics", "ipc", "ipc needs"),
    ] {
        let run = Bpfprof::clock([option, value, "--", "sh", "-c", "echo ran"]).run()?;
        assert_eq!((run.code(), run.stdout.as_str()), (Some(1), ""), "{option}");
        ensure!(run.stderr.contains(words), "{option}: {}", run.stderr);
    }
    Ok(())
}

/// A matrix that no cache holds, summed by columns and by rows: the same work, but for where memory is met.
#[test]
fn columns_wait_for_memory_and_rows_do_not() -> Result<()> {
    const TEST: &str = "counters::columns_wait_for_memory_and_rows_do_not";
    if !host::has_pmu() {
        return host::skip(TEST, "this machine has no PMU");
    }
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    Bpfprof::new(["-e", "cycles", "--counters", "default"])
        .output(&json)
        .workload("matrix", &["--seconds", "6"])
        .succeed()?;
    let report = Report::read(&json)?;
    if !report.header.counters_missing.is_empty() {
        return host::skip(TEST, "this machine's PMU lacks events of the set `default`");
    }
    let metric = |function: &str, metric: &str| -> Result<_> {
        let found = report.function(function)?.metrics.get(metric).copied().flatten();
        found.with_context(|| format!("{function} has no {metric}"))
    };
    let (column, row) = (metric("column_sum", "ipc")?, metric("row_sum", "ipc")?);
    ensure!(column.high < row.low, "IPC of columns {column:?}, of rows {row:?}");
    let (column, row) = (metric("column_sum", "llc-mpki")?, metric("row_sum", "llc-mpki")?);
    ensure!(column.value > 10.0 * row.value, "misses of columns {column:?}, of rows {row:?}");
    for event in report.header.counters.iter().filter(|event| event.running > 0.999) {
        let closure = event.closure.with_context(|| format!("{} has too few samples", event.name))?;
        ensure!((closure - 1.0).abs() < 0.02, "{event:?}");
    }
    Ok(())
}

fn count_faults(attribution: &str) -> Result<(Report, Folded)> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::clock(["--counters", "page-faults", "--attribution", attribution])
        .args(["--folded-event", "page-faults"])
        .output(&json)
        .output(&folded);
    run.workload("faults", &[&PAGES.to_string()]).succeed()?;
    Ok((Report::read(&json)?, Folded::read(&folded)?))
}

/// All that the event counted is accounted for, but for what the two ends of a run leave.
fn require_closure(closure: Option<f64>) -> Result<()> {
    ensure!(closure.is_some_and(|closure| (0.99..=1.001).contains(&closure)), "closure {closure:?}");
    Ok(())
}
