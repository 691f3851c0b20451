//! Options that keep a part of the samples.

use std::process::Command;

use anyhow::Result;
use bpfprof_tests::folded::is_kernel;
use bpfprof_tests::{Bpfprof, Folded, Report, Target, host};

#[test]
fn user_only_drops_kernel_frames_and_keeps_their_time() -> Result<()> {
    let (report, folded) = record(&["--user-only"], "faults", &["300000"])?;
    assert!(folded.lines.iter().all(|line| !line.frames.iter().any(|frame| is_kernel(frame))), "{folded:?}");
    // Half of the time by construction, and nearly all of it in the kernel's page fault handler.
    let touching = folded.weight_of("touch_pages") as f64 / report.header.weight as f64;
    assert!((0.35..0.65).contains(&touching), "{touching:.3} in touch_pages");
    Ok(())
}

#[test]
fn kernel_only_keeps_kernel_frames_alone() -> Result<()> {
    let (report, folded) = record(&["--kernel-only"], "faults", &["300000"])?;
    assert!(folded.weight() > 0);
    assert!(folded.lines.iter().all(|line| line.frames.iter().all(|frame| is_kernel(frame))), "{folded:?}");
    assert!(report.header.lost.user_mode_left_out > 0, "touch_nothing spins in user mode");
    Ok(())
}

#[test]
fn both_kinds_of_frames_without_either() -> Result<()> {
    let (_, folded) = record(&[], "faults", &["300000"])?;
    let through = folded
        .weight_where(|line| line.has("touch_pages") && line.frames.iter().any(|frame| is_kernel(frame)));
    assert!(through * 4 > folded.weight(), "kernel frames lie on top of the user's: {folded:?}");
    Ok(())
}

#[test]
fn a_modifier_samples_in_user_mode_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::new(["-e", "cpu-clock:u", "-o", "-"]).output(&json).workload("faults", &["300000"]);
    let folded = run.succeed()?.folded()?;
    assert!(folded.weight_of("touch_nothing") > 0);
    assert!(folded.lines.iter().all(|line| !line.frames.iter().any(|frame| is_kernel(frame))), "{folded:?}");
    // It spends a small part of its time in user mode, the other function nearly all.
    assert!(folded.weight_of("touch_pages") * 2 < folded.weight_of("touch_nothing"), "{folded:?}");
    assert_eq!(Report::read(&json)?.header.event.name, "cpu-clock:u");
    Ok(())
}

#[test]
fn one_command_name() -> Result<()> {
    let (_, folded) = record(&["--comm", "alpha"], "spin", &["alpha,beta", "0.5", "--threads", "2"])?;
    assert!(folded.weight_of("spin_alpha") > 0);
    assert_eq!(folded.weight_of_comm("alpha"), folded.weight());
    Ok(())
}

#[test]
fn one_cpu() -> Result<()> {
    if host::online_cpus() < 2 {
        return host::skip("narrowing::one_cpu", "this machine has one CPU");
    }
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "1"]).arg(host::workload("spin")).args(["alpha", "60"]);
    let target = Target::start(pinned, "spin")?;
    let arguments = ["--pid", &target.pid(), "-d", "500ms"];
    let there = Bpfprof::clock(["--cpu", "1"]).args(arguments).succeed()?.folded()?;
    assert!(there.weight_of("spin_alpha") > 0);
    Bpfprof::clock(["-C", "0"]).args(arguments).run()?.expect_refusal(1, &["no sample"])
}

#[test]
fn idle_cpus_count_when_asked_for() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let _target = Target::workload("spin", &["alpha", "60"])?;
    let idle_weight = |folded: &Folded| folded.weight_where(|line| line.comm.starts_with("swapper"));
    let (mut left_out, mut shown) = (0, 0);
    // A virtual machine's idle CPU delivers samples in some runs and none in others, so there are many.
    for _ in 0..20 {
        let without =
            Bpfprof::clock(["--all", "-d", "300ms", "-o", "-"]).output(&json).succeed()?.folded()?;
        left_out += Report::read(&json)?.header.lost.idle_left_out;
        assert_eq!(idle_weight(&without), 0, "{without:?}");
        let with = Bpfprof::clock(["--all", "--idle", "-d", "300ms", "-o", "-"])
            .output(&json)
            .succeed()?
            .folded()?;
        assert_eq!(Report::read(&json)?.header.lost.idle_left_out, 0);
        shown += idle_weight(&with);
        if shown > 0 {
            break;
        }
    }
    // On a machine that has been busy on all CPUs there is no idle time to show.
    assert!(left_out < 50 || shown > 0, "{left_out} samples left out");
    Ok(())
}

fn record(arguments: &[&str], workload: &str, of_workload: &[&str]) -> Result<(Report, Folded)> {
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("x.json");
    let run = Bpfprof::clock(arguments)
        .args(["-o", "-"])
        .output(&json)
        .workload(workload, of_workload)
        .succeed()?;
    Ok((Report::read(&json)?, run.folded()?))
}
