//! What other tools write and read.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Folded, host};

#[test]
fn folded_stacks_come_back_as_they_were_and_inferno_draws_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, svg) = (folder.path().join("x.folded"), folder.path().join("x.svg"));
    Bpfprof::clock::<&str>([])
        .output(&file)
        .workload("spin", &["alpha,beta", "0.3", "--threads", "2"])
        .succeed()?;
    let shown = Bpfprof::new(["report"]).args([&file]).output(&svg).args(["-o", "-"]).succeed()?;
    assert_eq!(shown.stdout, fs::read_to_string(&file)?);
    assert!(shown.stderr.contains("is not known"), "what the file does not say is said: {}", shown.stderr);
    assert!(fs::read_to_string(&svg)?.contains("spin_alpha"));
    let mut drawn = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, shown.stdout.lines(), &mut drawn)?;
    assert!(String::from_utf8(drawn)?.contains("spin_alpha"));
    Ok(())
}

/// What perf itself recorded and printed, against inferno's reading of the same text.
#[test]
fn the_text_of_perf_script_is_read_as_inferno_reads_it() -> Result<()> {
    const TEST: &str = "other_tools::the_text_of_perf_script_is_read_as_inferno_reads_it";
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("perf.data");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-c", "1000000", "-g", "-o"]).arg(&data).arg("--");
    record.arg(host::workload("spin")).args(["alpha,beta", "0.3", "--threads", "2"]);
    if !record.output().is_ok_and(|done| done.status.success()) {
        return host::skip(TEST, "perf is not installed, or does not record here");
    }
    let script = Command::new("perf").args(["script", "-i"]).arg(&data).output().context("perf script")?;
    ensure!(script.status.success(), "perf script: {}", String::from_utf8_lossy(&script.stderr));
    let text = folder.path().join("x.txt");
    fs::write(&text, &script.stdout)?;
    let ours = Bpfprof::new(["report"]).args([&text]).succeed()?.folded()?;
    let theirs = inferno_folds(&script.stdout)?;
    for name in ["spin_alpha", "spin_beta"] {
        ensure!(ours.weight_of(name) > 50, "{name} is hardly there");
        assert_eq!(ours.weight_of(name), theirs.weight_of(name), "{name}");
    }
    assert_eq!(ours.weight(), theirs.weight());
    Ok(())
}

fn inferno_folds(text: &[u8]) -> Result<Folded> {
    use inferno::collapse::Collapse as _;
    let mut folded = Vec::new();
    inferno::collapse::perf::Folder::default().collapse(text, &mut folded)?;
    Folded::parse(&String::from_utf8(folded)?)
}
