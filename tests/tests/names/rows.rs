//! Rows are code that people own: what is inlined from a library of the language counts for the function that it is part of.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Folded, Report, host};

use crate::program::{Workshop, is_installed, run, workload};

/// A program of a source in `tests/workloads`.
fn rust(shop: &Workshop, debug: &str) -> Result<PathBuf> {
    let program = shop.path("rows");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "--edition", "2021", "-C", &format!("debuginfo={debug}"), "-o"]);
    run(rustc.arg(&program).arg(workload("rows.rs")))?;
    Ok(program)
}

/// A recording of it: everything there is.
fn saved(program: &Path, shop: &Workshop) -> Result<PathBuf> {
    let file = shop.path("run.pb.gz");
    Bpfprof::clock(["--quiet", "--user-only"])
        .output(&file)
        .args(["--".as_ref(), program.as_os_str()])
        .succeed()?;
    Ok(file)
}

fn report(file: &Path, arguments: &[&str], shop: &Workshop) -> Result<Report> {
    let json = shop.path("rows.json");
    Bpfprof::new(["report".as_ref(), file.as_os_str()]).args(arguments).output(&json).succeed()?;
    Report::read(&json)
}

/// Part of the self weight that rows of these names have.
fn part(report: &Report, is_wanted: impl Fn(&str) -> bool) -> f64 {
    let weight = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        report.functions.iter().filter(|row| wanted(&row.name)).map(|row| row.own.weight).sum()
    };
    weight(&is_wanted) as f64 / weight(&|_| true).max(1) as f64
}

fn is_own(name: &str) -> bool {
    name.starts_with("rows::")
}

#[test]
fn inlined_library_code_counts_for_the_function_around_it() -> Result<()> {
    let shop = Workshop::new()?;
    let file = saved(&rust(&shop, "2")?, &shop)?;
    let all = report(&file, &["--inlines", "all"], &shop)?;
    ensure!(part(&all, is_own) < 0.9, "the library's code is not inlined at all: {:?}", all.functions);
    let own = report(&file, &[], &shop)?;
    ensure!(part(&own, is_own) > 0.95, "{:?}", own.functions);
    ensure!(own.functions.iter().take(2).all(|row| is_own(&row.name)), "{:?}", own.functions);
    let intrinsics =
        own.functions.iter().filter(|row| row.name.contains("add_to") || row.name.contains("in_intrinsics"));
    ensure!(intrinsics.map(|row| row.own.weight).sum::<u64>() > 0, "{:?}", own.functions);
    let none = report(&file, &["--inlines", "none"], &shop)?;
    ensure!(none.functions.iter().all(|row| !row.name.ends_with("mixed")), "{:?}", none.functions);
    ensure!(
        part(&none, |name| name.ends_with("in_a_closure") || name.ends_with("in_intrinsics")) > 0.9,
        "{:?}",
        none.functions
    );
    for report in [&all, &own, &none] {
        ensure!(report.header.weight == all.header.weight, "a row takes samples away");
        let sum: u64 = report.functions.iter().map(|row| row.own.weight).sum();
        ensure!(sum == report.header.weight, "{sum}: {report:?}");
    }
    Ok(())
}

#[test]
fn stacks_keep_what_tables_leave_out() -> Result<()> {
    let shop = Workshop::new()?;
    let file = saved(&rust(&shop, "2")?, &shop)?;
    let stacks = |arguments: &[&str]| -> Result<Folded> {
        Bpfprof::new(["report".as_ref(), file.as_os_str()]).args(arguments).succeed()?.folded()
    };
    let (own, none) = (stacks(&[])?, stacks(&["--inlines", "none"])?);
    let inlined =
        |folded: &Folded| folded.weight_where(|line| line.frames.iter().any(|frame| frame.ends_with("_[i]")));
    ensure!(inlined(&own) > 0 && inlined(&none) == 0 && own.weight() == none.weight(), "{none:?}");
    Ok(())
}

#[test]
fn callers_and_lines_are_those_of_own_code() -> Result<()> {
    let shop = Workshop::new()?;
    let file = saved(&rust(&shop, "2")?, &shop)?;
    let own = report(&file, &[], &shop)?;
    let row = &own.functions[0];
    let hottest = row.hottest_line.as_ref().with_context(|| format!("no line of {row:?}"))?;
    ensure!(hottest.file.ends_with("rows.rs") && hottest.line > 1 && hottest.share > 0.0, "{hottest:?}");
    let table =
        Bpfprof::new(["report".as_ref(), file.as_os_str()]).args(["--by", "line", "-o", "-"]).succeed()?;
    let first = table
        .stderr
        .lines()
        .skip_while(|line| !line.contains("self %"))
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    ensure!(first.contains("rows.rs:"), "{}", table.stderr);
    // Its callers are own code too, though iterators of the library lie between.
    let callers = |arguments: &[&str]| {
        Bpfprof::new(["report".as_ref(), file.as_os_str()]).args(["--callers", "mixed"]).args(arguments).run()
    };
    let shown = callers(&[])?;
    ensure!(shown.stdout.contains("called by rows::work::in_a_closure"), "{}{}", shown.stdout, shown.stderr);
    let hidden =
        Bpfprof::new(["report".as_ref(), file.as_os_str()]).args(["--callers", "black_box"]).run()?;
    hidden.expect_refusal(1, &["standard library", "--inlines all"])?;
    let all = Bpfprof::new(["report".as_ref(), file.as_os_str()])
        .args(["--callers", "black_box", "--inlines", "all"])
        .run()?;
    ensure!(all.code() == Some(0), "{}", all.stderr);
    Ok(())
}

/// Units with line tables alone have no scopes, so that the place of the source decides.
#[test]
fn line_tables_are_enough() -> Result<()> {
    let shop = Workshop::new()?;
    let file = saved(&rust(&shop, "line-tables-only")?, &shop)?;
    let own = report(&file, &[], &shop)?;
    let library =
        part(&own, |name| name.starts_with("core::") || name.contains("wrapping") || name.contains("_mm_"));
    ensure!(library < 0.05, "{:?}", own.functions);
    Ok(())
}

#[test]
fn algorithms_of_cpp_count_for_their_callers() -> Result<()> {
    if !is_installed("g++") {
        return host::skip("algorithms_of_cpp_count_for_their_callers", "g++ is not installed");
    }
    let shop = Workshop::new()?;
    let program = shop.path("algorithms");
    run(Command::new("g++").args(["-O1", "-g", "-o"]).arg(&program).arg(workload("algorithms.cc")))?;
    let file = saved(&program, &shop)?;
    let library = |name: &str| name.contains("std::") || name.contains("__gnu_cxx");
    ensure!(
        part(&report(&file, &["--inlines", "all"], &shop)?, library) > 0.1,
        "nothing of the library is inlined"
    );
    let own = report(&file, &[], &shop)?;
    let by_own = part(&own, |name| ["sums_up", "transforms", "main"].iter().any(|own| name.contains(own)));
    ensure!(by_own > 0.9, "{:?}", own.functions);
    Ok(())
}
