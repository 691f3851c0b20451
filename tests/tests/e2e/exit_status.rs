//! 0 done, 2 bad usage, 1 not possible; for a command that ran, its own.

use std::fs;

use anyhow::Result;
use bpfprof_tests::target::dead_pid;
use bpfprof_tests::{Bpfprof, Report, Target};

#[test]
fn bad_usage_is_2() -> Result<()> {
    let wrong: [&[&str]; 11] = [
        &["--no-such-flag"],
        &[],
        &["-d", "1s"],
        &["--all", "--pid", "1"],
        &["--all", "--", "true"],
        &["--pid", "1", "--tid", "1"],
        &["--pid", "none"],
        &["--all", "-d", "tomorrow"],
        &["--all", "-F", "0"],
        &["--all", "-F", "99", "-c", "1000"],
        &["--all", "-e", "no-such-event", "-d", "1s"],
    ];
    for arguments in wrong {
        Bpfprof::new(arguments)
            .run()?
            .expect_refusal(2, &[])
            .map_err(|error| error.context(format!("{arguments:?}")))?;
    }
    Ok(())
}

#[test]
fn an_unknown_extension_is_bad_usage() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let marker = folder.path().join("ran");
    let run = Bpfprof::new(["-o", "x.docx", "--", "touch"]).args([&marker]).run()?;
    run.expect_refusal(2, &["docx", ".folded"])?;
    assert!(!marker.exists(), "the command ran");
    Ok(())
}

#[test]
fn no_such_process_is_1() -> Result<()> {
    let pid = dead_pid()?;
    Bpfprof::new(["--pid", &pid]).run()?.expect_refusal(1, &[&pid])?;
    Bpfprof::new(["--tid", &pid]).run()?.expect_refusal(1, &[&pid])?;
    Bpfprof::new(["--cgroup", "/no/such/cgroup"]).run()?.expect_refusal(1, &["/no/such/cgroup"])
}

#[test]
fn no_sample_at_all_is_1() -> Result<()> {
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("60");
    let target = Target::start(sleep, "sleep")?;
    Bpfprof::clock(["--pid", &target.pid(), "-d", "300ms"]).run()?.expect_refusal(1, &["no sample"])
}

#[test]
fn an_output_that_cannot_be_written_is_1_before_anything_runs() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let marker = folder.path().join("ran");
    let output = folder.path().join("missing/x.folded");
    let run = Bpfprof::new(["-o"]).args([&output]).args(["--", "touch"]).args([&marker]).run()?;
    run.expect_refusal(1, &["missing/x.folded"])?;
    assert!(!marker.exists(), "the command ran");
    Ok(())
}

#[test]
fn a_command_gives_its_own() -> Result<()> {
    for (script, status) in [
        ("spin alpha 0.2; exit 7", 7),
        ("exit 7", 7),
        ("spin alpha 0.2; kill -KILL $$", 137),
        ("spin alpha 0.2; kill -TERM $$", 143),
    ] {
        let run = Bpfprof::clock::<&str>([]).shell(script).run()?;
        assert_eq!(run.code(), Some(status), "{script}: {} {}", run.status, run.stderr);
    }
    Ok(())
}

#[test]
fn a_command_that_goes_on_after_the_sampling_gives_its_own() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run =
        Bpfprof::clock(["-d", "300ms"]).output(&json).shell("spin alpha 0.3; spin beta 1; exit 7").run()?;
    assert_eq!(run.code(), Some(7), "{} {}", run.status, run.stderr);
    let report = Report::read(&json)?;
    assert!(report.function("spin_alpha")?.total.weight > 0);
    // Of 1.3 s: the time of one CPU, and what arming and stopping take.
    assert!(report.header.weight < 900_000_000, "{} ns sampled in 300 ms", report.header.weight);
    Ok(())
}

#[test]
fn a_command_that_cannot_start_gives_what_a_shell_would() -> Result<()> {
    Bpfprof::new(["--", "/no/such/command"]).run()?.expect_refusal(127, &["/no/such/command"])?;
    Bpfprof::new(["--", "no-such-command-on-the-path"])
        .run()?
        .expect_refusal(127, &["no-such-command-on-the-path"])?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), "not a program")?;
    Bpfprof::new(["--"]).args([file.path()]).run()?.expect_refusal(126, &[&file.path().to_string_lossy()])
}
