//! Code that a process makes while it runs.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::host;

use crate::program::{is_installed, run, workload};
use crate::recorded::Recorded;

#[test]
fn node_names_its_functions_in_a_perf_map() -> Result<()> {
    if !is_installed("node") {
        return host::skip("node_names_its_functions_in_a_perf_map", "node is not installed");
    }
    let script = workload("burn.js");
    // A /tmp of its own, which is gone when its last process is, and the map before it. The script is opened before: it may lie below /tmp.
    for namespaces in ["-m", "-mpf"] {
        let command = format!(
            "unshare {namespaces} sh -c 'exec <{} && mount -t tmpfs none /tmp && cd /tmp && node --perf-basic-prof - 1; rm /tmp/perf-*.map'",
            script.display()
        );
        let recorded = Recorded::script(&command)?;
        let named = recorded
            .folded
            .weight_where(|line| line.frames.iter().any(|frame| frame.contains("burnsInScript")));
        // The first moments are node's own start.
        ensure!(named * 2 > recorded.folded.weight(), "{named}:\n{}", recorded.stderr);
    }
    Ok(())
}

#[test]
fn node_names_its_functions_and_lines_in_a_dump() -> Result<()> {
    if !is_installed("node") {
        return host::skip("node_names_its_functions_and_lines_in_a_dump", "node is not installed");
    }
    // It writes the dump, and a log, where it is.
    let folder = tempfile::tempdir()?;
    let script = workload("burn.js");
    let line = fs::read_to_string(&script)?.lines().position(|line| line.contains("i * i"));
    // Of a path that it has made itself, this Node writes memory that it has freed; of a literal it writes the name.
    let run = "require('vm').runInThisContext(require('fs').readFileSync(process.argv[1], 'utf8'), { filename: 'burn.js' })";
    let command = format!(
        "cd {} && exec node --perf-prof -e \"{run}\" {} 1",
        folder.path().display(),
        script.display()
    );
    let recorded = Recorded::script(&command)?;
    let rows = &recorded.report.functions;
    let row = rows.iter().find(|row| row.name.contains("burnsInScript")).context("no row of the script")?;
    ensure!(row.own.samples * 2 > recorded.report.header.samples, "{row:?}");
    let hottest = row.hottest_line.as_ref().context("no line")?;
    ensure!(
        hottest.file.ends_with("burn.js") && Some(hottest.line as usize) == line.map(|line| line + 1),
        "{row:?}"
    );
    Ok(())
}

#[test]
fn java_names_its_methods_in_a_map_that_it_writes_at_its_end() -> Result<()> {
    if !is_installed("javac") {
        return host::skip(
            "java_names_its_methods_in_a_map_that_it_writes_at_its_end",
            "javac is not installed",
        );
    }
    let folder = tempfile::tempdir()?;
    run(Command::new("javac").arg("-d").arg(folder.path()).arg(workload("Burn.java")))?;
    let java = "exec java -XX:+PreserveFramePointer";
    let dumps = "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit";
    let command = format!("cd {} && {java} {dumps} Burn 1.5", folder.path().display());
    let recorded = Recorded::script(&command)?;
    let named = recorded
        .folded
        .weight_where(|line| line.frames.last().is_some_and(|frame| frame.contains("burnsInJava")));
    // The first moments are the JVM's own start.
    ensure!(named * 2 > recorded.folded.weight(), "{named}:\n{}", recorded.stderr);
    let without = Recorded::script(&format!("cd {} && {java} Burn 0.7", folder.path().display()))?;
    ensure!(without.stderr.contains("Compiler.perfmap"), "{}", without.stderr);
    Ok(())
}

#[test]
fn without_a_map_the_remedy_is_said() -> Result<()> {
    if !is_installed("node") {
        return host::skip("without_a_map_the_remedy_is_said", "node is not installed");
    }
    let recorded = Recorded::command(["node".as_ref(), workload("burn.js").as_os_str(), "0.5".as_ref()])?;
    ensure!(recorded.stderr.contains("--perf-basic-prof"), "{}", recorded.stderr);
    Ok(())
}
