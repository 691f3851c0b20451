//! Processes that are gone before anybody could ask about them.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use bpfprof_tests::Bpfprof;
use bpfprof_tests::folded::{Line, is_kernel};

use crate::program::Workshop;
use crate::recorded::Recorded;

#[test]
fn a_thousand_of_2_to_20_ms_are_all_attributed_and_named() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_briefly", &[])?;
    // 2 to 20 ms in a fixed order, 11 s in all.
    let script = format!(
        "i=0; while [ $i -lt 1000 ]; do ms=$((2 + i * 7 % 19)); {} 0.0$((ms / 10))$((ms % 10)); i=$((i+1)); done",
        burn.display()
    );
    let recorded = Recorded::script(&script)?;
    let due: u64 = (0..1000).map(|i| 2 + i * 7 % 19).sum();
    let named = recorded.named_share(|line| line.comm == "burn");
    ensure!(named >= 0.99, "{named} of the innermost user frames have names:\n{}", recorded.stderr);
    let burned = recorded.folded.weight_of("burns_briefly") as f64 / 1e6;
    ensure!((burned / due as f64 - 1.0).abs() < 0.05, "{burned} ms of {due} ms:\n{}", recorded.stderr);
    let lost = &recorded.report.header.lost;
    ensure!((lost.samples, lost.sideband_records, lost.not_followed) == (0, 0, 0), "{}", recorded.stderr);
    Ok(())
}

#[test]
fn files_that_are_removed_when_their_processes_end() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_before_removal", &["-Wl,--build-id=none"])?;
    let copy = shop.path("copy");
    let script = format!(
        "i=0; while [ $i -lt 40 ]; do cp {} {1}; {1} 0.02; rm {1}; i=$((i+1)); done",
        burn.display(),
        copy.display()
    );
    let recorded = Recorded::script(&script)?;
    let named = recorded.named_share(|line| line.comm == "copy");
    ensure!(named >= 0.95, "{named} of the innermost user frames have names:\n{}", recorded.stderr);
    Ok(())
}

#[test]
fn the_innermost_user_frame_during_an_exec_is_of_the_program_before() -> Result<()> {
    let recorded = Recorded::script("i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done")?;
    let in_exec = |line: &Line| line.frames.iter().any(|frame| frame.starts_with("do_execveat_common"));
    let all = recorded.folded.weight_where(in_exec);
    let unknown =
        recorded.folded.weight_where(|line| in_exec(line) && innermost_user(line) == Some("[unknown]"));
    ensure!(all > 0 && unknown * 50 <= all, "{unknown} of {all} in an exec are in unknown memory");
    Ok(())
}

#[test]
fn three_hundred_processes_share_one_open_file() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_among_many", &[])?;
    let done = shop.path("done");
    let script = format!(
        "i=0; while [ $i -lt 300 ]; do {} 0.002 & i=$((i+1)); done; wait; touch {}; sleep 1",
        burn.display(),
        done.display()
    );
    let running = Bpfprof::clock(["--", "sh", "-c", &script]).start()?;
    let opened = bpfprof_tests::target::wait_for("300 processes", || {
        done.exists().then(|| count_open(running.pid().as_raw_nonzero().get(), &burn))
    })?;
    let finished = running.wait()?;
    ensure!(opened == 1, "the program is open {opened} times:\n{}", finished.stderr);
    ensure!(finished.folded()?.weight_of("burns_among_many") > 0, "{}", finished.stderr);
    Ok(())
}

#[test]
fn programs_at_one_address_are_told_apart_across_execs() -> Result<()> {
    let shop = Workshop::new()?;
    let fixed = ["-no-pie", "-fno-pie"];
    let a = shop.build("a", "burns_first", &fixed)?;
    let b = shop.build("b", "burns_second", &fixed)?;
    let c = shop.build("c", "burns_third", &fixed)?;
    let words = [a.as_os_str(), "0.4".as_ref(), "exec".as_ref(), b.as_os_str(), "0.4".as_ref()];
    let words = words.into_iter().chain(["exec".as_ref(), c.as_os_str(), "0.4".as_ref()]);
    let recorded = Recorded::command(words)?;
    for (comm, function) in [("a", "burns_first"), ("b", "burns_second"), ("c", "burns_third")] {
        recorded.spent_in(function, 0.25)?;
        let elsewhere = recorded.folded.weight_where(|line| line.has(function) && line.comm != comm);
        ensure!(elsewhere == 0, "{function} has {elsewhere} outside of {comm}");
    }
    Ok(())
}

fn innermost_user(line: &Line) -> Option<&str> {
    line.frames.iter().rfind(|frame| !is_kernel(frame)).map(String::as_str)
}

fn count_open(process: i32, file: &Path) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    links.filter(|link| link == file).count()
}
