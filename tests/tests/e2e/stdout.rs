//! stdout carries data only.

use std::process::Command;

use anyhow::Result;
use bpfprof_tests::{Bpfprof, Report, host};

#[test]
fn every_line_is_a_folded_stack_that_inferno_takes() -> Result<()> {
    let run = Bpfprof::clock::<&str>([]).workload("spin", &["alpha", "0.5"]).succeed()?;
    assert!(run.folded()?.weight_of("spin_alpha") > 0);
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, run.stdout.lines(), &mut svg)?;
    assert!(String::from_utf8(svg)?.contains("spin_alpha"));
    // The function with the most self time is always among the rows that the table has room for.
    assert!(run.stderr.contains("cpu_time::mix"), "the table goes to stderr: {}", run.stderr);
    assert!(run.stderr.contains("cpu-clock"), "the header names the event: {}", run.stderr);
    Ok(())
}

#[test]
fn empty_when_every_output_has_a_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run =
        Bpfprof::clock::<&str>([]).output(&folder.path().join("x.svg")).workload("spin", &["alpha", "0.3"]);
    assert_eq!(run.succeed()?.stdout, "");
    Ok(())
}

#[test]
fn a_dash_names_it_beside_files() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::clock(["-o", "-"]).output(&json).workload("spin", &["alpha", "0.3"]).succeed()?;
    assert_eq!(run.folded()?.weight(), Report::read(&json)?.header.weight);
    Ok(())
}

#[test]
fn quiet_says_nothing_when_all_is_well() -> Result<()> {
    let run = Bpfprof::clock(["--quiet"]).workload("spin", &["alpha", "0.3"]).succeed()?;
    assert!(run.folded()?.weight_of("spin_alpha") > 0);
    assert_eq!(run.stderr, "");
    Ok(())
}

#[test]
fn a_reader_that_has_seen_enough_costs_no_other_output() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let mut command = Command::new("sh");
    command.args(["-c", r#""$@" | true"#, "sh"]).arg(host::bpfprof()).args(["-e", "cpu-clock", "-o", "-"]);
    let run = Bpfprof::through(command).output(&json).workload("spin", &["alpha", "0.3"]).succeed()?;
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert!(Report::read(&json)?.function("spin_alpha")?.total.weight > 0);
    Ok(())
}

#[test]
fn weights_can_be_samples() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let arguments = ["--weight", "samples", "-o", "-"];
    let run = Bpfprof::clock(arguments).output(&json).workload("spin", &["alpha", "0.3"]).succeed()?;
    let header = Report::read(&json)?.header;
    assert_eq!(run.folded()?.weight(), header.samples);
    assert!(header.weight > 1000 * header.samples, "the report keeps nanoseconds");
    Ok(())
}

#[test]
fn a_terminal_gets_the_table() -> Result<()> {
    if Command::new("script").arg("--version").output().is_err() {
        return host::skip(
            "stdout::a_terminal_gets_the_table",
            "`script` (package bsdutils) is not installed",
        );
    }
    let command = format!(
        "{} -e cpu-clock --quiet -- {} alpha 0.3",
        host::bpfprof().display(),
        host::workload("spin").display()
    );
    // Quiet: what is left on the terminal is stdout.
    let shown = Command::new("script").args(["-qec", &command, "/dev/null"]).output()?;
    let shown = String::from_utf8(shown.stdout)?;
    assert!(shown.contains("self %") && shown.contains("spin_alpha"), "no table: {shown}");
    assert!(!shown.contains("main;"), "folded stacks on a terminal: {shown}");
    Ok(())
}
