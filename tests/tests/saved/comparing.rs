//! `diff`: what became slower is marked, and what did not is not.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Finished};

/// CPU time that is 10 slices or more.
const SECONDS: &str = "2.5";

fn record(folder: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let file = folder.join(name);
    let arguments = [&["--seconds", SECONDS], options].concat();
    Bpfprof::clock(["--quiet"]).output(&file).workload("stages", &arguments).succeed()?;
    Ok(file)
}

fn diff(before: &Path, after: &Path) -> Bpfprof {
    Bpfprof::new(["diff"]).args([before, after])
}

/// Functions that are marked, with how; `None` where too little can be told of this pair to be compared.
fn marked(before: &Path, after: &Path, json: &Path) -> Result<Option<Vec<(String, String)>>> {
    diff(before, after).output(json).succeed()?;
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json)?)?;
    let functions = document["functions"].as_array().context("no functions")?;
    // The four stages.
    let comparisons = document["comparisons"].as_u64().context("no number of comparisons")?;
    if !document["too_short"].is_null() || comparisons < 4 {
        return Ok(None);
    }
    let mark = |function: &serde_json::Value| {
        Some((function["name"].as_str()?.to_owned(), function["mark"].as_str()?.to_owned()))
    };
    Ok(Some(functions.iter().filter_map(mark).collect()))
}

/// Marks by chance come in at most 5 of 100 pairs of runs, and in as many the slices of a function happen to look too irregular to tell. On
/// a busy machine it may be one of four; that it is so in all of eight pairs then happens less than once in 10,000 times.
const PAIRS: usize = 8;

#[test]
fn exactly_the_function_that_became_twice_as_slow_is_marked() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("d.json");
    let slow = [("stages::stage_one".to_owned(), "slower".to_owned())];
    let (mut equal_without, mut slow_alone) = (false, false);
    for _ in 0..PAIRS {
        let before = record(folder.path(), "before.pb.gz", &[])?;
        if !equal_without {
            let again = record(folder.path(), "again.pb.gz", &[])?;
            equal_without = marked(&before, &again, &json)?.is_some_and(|marked| marked.is_empty());
        }
        if !slow_alone {
            let after = record(folder.path(), "after.pb.gz", &["--slow", "one", "2"])?;
            slow_alone = marked(&before, &after, &json)?.is_some_and(|marked| marked == slow);
        }
        if equal_without && slow_alone {
            return Ok(());
        }
    }
    ensure!(equal_without, "something was marked in all pairs of runs of one program");
    ensure!(slow_alone, "stage_one alone was marked in no pair");
    Ok(())
}

/// Two callers share a function that takes as much as before, of the one more and of the other less.
#[test]
fn a_caller_that_calls_more_often_is_marked_by_its_total() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("d.json");
    let wanted = [("stages::caller_one", "slower"), ("stages::caller_two", "faster")];
    let mut last = None;
    for _ in 0..PAIRS {
        let before = record(folder.path(), "before.pb.gz", &["--calls", "4", "4"])?;
        let after = record(folder.path(), "after.pb.gz", &["--calls", "7", "1"])?;
        let shown =
            diff(&before, &after).args(["--total", "--fail-on-regression", "20%"]).output(&json).run()?;
        let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json)?)?;
        assert_eq!(document["compared"], "total");
        let functions = document["functions"].as_array().context("no functions")?;
        let mut marks: Vec<(&str, &str)> = functions
            .iter()
            .filter_map(|function| Some((function["name"].as_str()?, function["mark"].as_str()?)))
            .collect();
        marks.sort_unstable();
        let hinted = diff(&before, &after).succeed()?.stdout.contains("--total shows them");
        if marks == wanted && shown.code() == Some(3) && hinted {
            ensure!(shown.stderr.contains("regression: stages::caller_one"), "{}", shown.stderr);
            ensure!(shown.stdout.contains("total before %"), "{}", shown.stdout);
            return Ok(());
        }
        last = Some(format!("{marks:?}, status {:?}, hint: {hinted}", shown.code()));
    }
    anyhow::bail!("the callers alone were marked in no pair: {last:?}")
}

#[test]
fn what_both_runs_share_is_said_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let before = record(folder.path(), "before.pb.gz", &[])?;
    let shown = diff(&before, &before).succeed()?;
    let lines: Vec<&str> = shown.stderr.lines().collect();
    ensure!(
        lines.len() <= 6 && lines[0].starts_with("before: ") && lines[1].starts_with("after:  "),
        "{lines:?}"
    );
    ensure!(lines.iter().filter(|line| line.contains("quality")).count() == 1, "{lines:?}");
    let all = diff(&before, &before).args(["--verbose"]).succeed()?;
    ensure!(all.stderr.contains("coverage") && !shown.stderr.contains("coverage"), "{}", all.stderr);
    Ok(())
}

#[test]
fn a_regression_has_a_status_of_its_own() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (before, after) = (folder.path().join("before.pb.gz"), folder.path().join("after.pb.gz"));
    let gate = |percent: &str| diff(&before, &after).args(["--fail-on-regression", percent]).run();
    let mut refused: Option<Finished> = None;
    for _ in 0..PAIRS {
        record(folder.path(), "before.pb.gz", &[])?;
        record(folder.path(), "after.pb.gz", &["--slow", "one", "3"])?;
        refused = Some(gate("5%")?).filter(|run| run.code() != Some(0));
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.context("a function that takes three times as long passes the gate")?;
    assert_eq!(refused.code(), Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("regression: stages::stage_one"), "{}", refused.stderr);
    assert!(refused.stdout.contains("▲") && refused.stdout.contains("stage_one"), "{}", refused.stdout);
    assert_eq!(gate("1000%")?.code(), Some(0));
    assert_eq!(diff(&before, &before).args(["--fail-on-regression", "0%"]).run()?.code(), Some(0));
    let picture = folder.path().join("d.svg");
    diff(&before, &after).output(&picture).succeed()?;
    assert!(fs::read_to_string(&picture)?.contains("stage_one"));
    Ok(())
}

#[test]
fn different_events_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (time, faults) = (folder.path().join("time.pb.gz"), folder.path().join("faults.pb.gz"));
    Bpfprof::clock::<&str>([]).output(&time).workload("spin", &["alpha", "0.3"]).succeed()?;
    Bpfprof::new(["-e", "page-faults", "-c", "1"]).output(&faults).workload("faults", &["1000"]).succeed()?;
    diff(&time, &faults).run()?.expect_refusal(1, &["cpu-clock", "page-faults", "cannot be compared"])
}
