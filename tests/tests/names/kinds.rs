//! Kinds of programs.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use bpfprof_tests::host;

use crate::program::{Workshop, is_installed, run, workload};
use crate::recorded::Recorded;

#[test]
fn position_independent_or_not_static_or_not() -> Result<()> {
    let shop = Workshop::new()?;
    let kinds: [&[&str]; 4] = [
        &["-pie", "-fPIE"],
        &["-no-pie", "-fno-pie"],
        &["-static-pie", "-fPIE", "-DSTATIC"],
        &["-static", "-DSTATIC"],
    ];
    for flags in kinds {
        let burn = shop.build("burn", "burns_in_any_kind", flags)?;
        let recorded = Recorded::command([burn.as_os_str(), "0.3".as_ref()])?;
        recorded.spent_in("burns_in_any_kind", 0.9)?;
        ensure!(recorded.report.function("burns_in_any_kind")?.object == "burn", "{flags:?}");
    }
    Ok(())
}

/// Units with line tables alone name functions without their path, which the symbol table has.
#[test]
fn a_program_with_line_tables_alone() -> Result<()> {
    let shop = Workshop::new()?;
    let (source, program) = (workload("lines.rs"), shop.path("lines"));
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "-C", "debuginfo=line-tables-only", "--edition", "2021", "-o"]);
    run(rustc.arg(&program).arg(source))?;
    let recorded = Recorded::command([program.as_os_str()])?;
    let inside = recorded
        .folded
        .weight_where(|line| line.frames.iter().any(|frame| frame == "lines::outer::burns_with_lines"));
    ensure!(inside as f64 > 0.9 * recorded.folded.weight() as f64, "{:?}", recorded.folded);
    Ok(())
}

#[test]
fn a_program_of_musl() -> Result<()> {
    if !is_installed("musl-gcc") {
        return host::skip("a_program_of_musl", "musl-gcc is not installed");
    }
    let shop = Workshop::new()?;
    let burn = shop.build_with("musl-gcc", "burn", "burns_with_musl", &["-static", "-DSTATIC"])?;
    Recorded::command([burn.as_os_str(), "0.3".as_ref()])?.spent_in("burns_with_musl", 0.9)
}

#[test]
fn old_system_calls() -> Result<()> {
    if !fs::read_to_string("/proc/self/maps")?.contains("[vsyscall]") {
        return host::skip("old_system_calls", "the kernel has no [vsyscall] page");
    }
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_not", &[])?;
    let recorded = Recorded::command([burn.as_os_str(), "0.5".as_ref(), "vsyscall".as_ref()])?;
    // The rest of the time is in the loop that calls.
    recorded.spent_in("time", 0.3)?;
    ensure!(recorded.report.function("time")?.object == "[vsyscall]");
    Ok(())
}

#[test]
fn what_an_object_lacks_is_said_with_the_remedy() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_without_a_name", &[])?;
    let stripped = shop.strip(&burn, "stripped")?;
    let recorded = Recorded::command([stripped.as_os_str(), "0.3".as_ref()])?;
    recorded.never_in("burns_without_a_name")?;
    let line = recorded.stderr.lines().find(|line| line.contains("stripped (in "));
    ensure!(line.is_some_and(|line| line.contains("debug = 1")), "{}", recorded.stderr);
    Ok(())
}
