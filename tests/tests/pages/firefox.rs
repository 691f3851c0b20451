//! The file for the Firefox Profiler. Its viewer is no package that could run here, so what its importer relies on is checked: columns of
//! equal length, and indices that lead somewhere.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Report};
use flate2::read::GzDecoder;
use serde_json::Value;

#[test]
fn the_importer_finds_what_it_relies_on() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, json) = (folder.path().join("x.profile.json.gz"), folder.path().join("x.json"));
    let run = Bpfprof::clock::<&str>([]).output(&file).output(&json);
    run.workload("spin", &["alpha,beta", "0.6", "--threads", "2"]).succeed()?;
    let profile = read(&file)?;
    let report = Report::read(&json)?;

    ensure!(profile["meta"]["preprocessedProfileVersion"].as_u64() >= Some(49), "{}", profile["meta"]);
    let threads = profile["threads"].as_array().context("no threads")?;
    let mut samples = 0;
    for thread in threads {
        check_thread(&profile, thread).with_context(|| format!("thread {}", thread["name"]))?;
        samples += numbers(&thread["samples"]["weight"])?.iter().sum::<i64>();
    }
    ensure!(samples as u64 == report.header.samples, "{samples} samples of {}", report.header.samples);
    for (name, function) in [("alpha", "spin_alpha"), ("beta", "spin_beta")] {
        let thread = threads.iter().find(|thread| thread["name"] == name);
        let strings = &thread.with_context(|| format!("no thread {name}"))?["stringArray"];
        let is_there = strings
            .as_array()
            .is_some_and(|all| all.iter().filter_map(Value::as_str).any(|string| string.ends_with(function)));
        ensure!(is_there, "{function} is not in thread {name}: {strings}");
    }
    Ok(())
}

fn check_thread(profile: &Value, thread: &Value) -> Result<()> {
    let length =
        |table: &str| thread[table]["length"].as_i64().with_context(|| format!("{table} has no length"));
    let strings = thread["stringArray"].as_array().context("no strings")?.len() as i64;
    let categories = profile["meta"]["categories"].as_array().context("no categories")?.len() as i64;
    let (frames, functions, stacks) = (length("frameTable")?, length("funcTable")?, length("stackTable")?);
    for (table, column, limit) in [
        ("samples", "stack", stacks),
        ("stackTable", "frame", frames),
        ("stackTable", "prefix", stacks),
        ("frameTable", "func", functions),
        ("frameTable", "category", categories),
        ("funcTable", "name", strings),
    ] {
        let indices = numbers(&thread[table][column])?;
        ensure!(indices.len() as i64 == length(table)?, "{table}.{column} has {} rows", indices.len());
        let leads = |&index: &i64| (-1..limit).contains(&index);
        ensure!(indices.iter().all(leads), "{table}.{column} leads beyond {limit}");
    }
    let callers = numbers(&thread["stackTable"]["prefix"])?;
    ensure!(
        callers.iter().zip(0..).all(|(&caller, stack)| caller < stack),
        "a stack comes before its caller"
    );
    let deltas = thread["samples"]["timeDeltas"].as_array().context("no times")?;
    ensure!(deltas.iter().all(|delta| delta.as_f64() >= Some(0.0)), "time runs backwards: {deltas:?}");
    Ok(())
}

/// A column of whole numbers, -1 for those that are missing.
fn numbers(column: &Value) -> Result<Vec<i64>> {
    let column = column.as_array().context("a column is missing")?;
    column
        .iter()
        .map(|cell| if cell.is_null() { Ok(-1) } else { cell.as_i64().context("a cell is no whole number") })
        .collect()
}

fn read(file: &Path) -> Result<Value> {
    let mut text = String::new();
    GzDecoder::new(File::open(file)?).read_to_string(&mut text)?;
    serde_json::from_str(&text).context("it is no JSON")
}
