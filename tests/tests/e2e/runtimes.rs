//! Programs that run tasks on threads of their own: tokio, Go.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::host;

use crate::unwind::{CLOCK, Recorded, count, follow, path, record};

#[test]
fn tokio_tasks_have_whole_stacks() -> Result<()> {
    let program = host::workload_without_frame_pointers("tokio_tasks");
    let recorded = record(&program, &["2", "2"], CLOCK)?;
    is_nearly_whole(&recorded)?;
    recorded.is_nearly_all_of("inner", |line| {
        let polled = line.frames.iter().any(|frame| frame.contains("runtime::scheduler::multi_thread"));
        polled && line.frames.iter().any(|frame| frame.contains("outer"))
    })
}

#[test]
fn goroutines_have_their_callers_by_frame_pointers_and_by_call_frame_information() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, flags) in [("pointers", "-w"), ("frames", "")] {
        let program = folder.path().join(name);
        if !builds(&program, flags)? {
            return host::skip("runtimes::goroutines", "`go` is not installed");
        }
        let recorded = record(&program, &["3000"], CLOCK)?;
        if name == "frames" {
            is_nearly_whole(&recorded).context(name)?;
        } else {
            let stacks = &recorded.report.header.stacks;
            ensure!(stacks.guessed * 100 >= stacks.user * 99 && stacks.whole < stacks.guessed, "{stacks:?}");
        }
        recorded
            .is_nearly_all_of("main.work", |line| {
                count(line, "main.descend") == 21 && follow(line, &["main.main.func1", "main.descend"])
            })
            .context(name)?;
    }
    Ok(())
}

/// At least 99 % of the user stacks reach their root.
fn is_nearly_whole(recorded: &Recorded) -> Result<()> {
    let stacks = &recorded.report.header.stacks;
    ensure!(stacks.whole * 100 >= stacks.user * 99 && stacks.whole > 1000, "{stacks:?}");
    Ok(())
}

/// Whether there is a `go` that builds the workload.
fn builds(program: &Path, linker_flags: &str) -> Result<bool> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/goroutines.go");
    let cache = program.with_extension("cache");
    let mut go = Command::new("go");
    go.args(["build", "-ldflags", linker_flags, "-o", path(program)?]).arg(source);
    match go.env("GOCACHE", cache).env("GO111MODULE", "off").status() {
        Ok(status) => {
            ensure!(status.success(), "{go:?} failed");
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).context("running go"),
    }
}
