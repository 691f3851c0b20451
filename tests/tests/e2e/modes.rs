//! The same work in each way to choose targets: launched, by process, by cgroup, on the whole machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::cgroup::Cgroup;
use bpfprof_tests::folded::Line;
use bpfprof_tests::{Bpfprof, Folded, Report, Target, host};
use rustix::process::Signal;

use crate::unwind::{OPTIMISED, Recorded, compile, count, follow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Launched,
    Process,
    Cgroup,
    All,
}

pub(crate) const MODES: [Mode; 4] = [Mode::Launched, Mode::Process, Mode::Cgroup, Mode::All];

/// Waits for `go` in its folder, `$1`, and runs the program `$2`, 20 calls deep, again and again for some milliseconds.
const SHORT: &str = r#"until [ -e "$1/go" ]; do sleep 0.02; done
i=0; while [ $i -lt 300 ]; do "$2" 20 $((5 + i % 16)); i=$((i + 1)); done"#;

/// As above, each time a copy of the program: a file of its own.
const COPIES: &str = r#"until [ -e "$1/go" ]; do sleep 0.02; done
i=0; while [ $i -lt 150 ]; do mkdir "$1/$i"; cp "$2" "$1/$i/deep"; "$1/$i/deep" 20 20; rm -r "$1/$i"; i=$((i + 1)); done"#;

/// As above, in two containers: each has its namespaces, its root, and so its own copies of the program and the C library.
const CONTAINERS: &str = r#"for c in one two; do
    mkdir "$1/$c"; cp -L --parents $(ldd "$2" | grep -o '/[^ ]*') "$1/$c"; cp "$2" "$1/$c/deep"
done
until [ -e "$1/go" ]; do sleep 0.02; done
for c in one two; do
    { i=0; while [ $i -lt 25 ]; do unshare --mount --pid --fork chroot "$1/$c" /deep 20 40; i=$((i + 1)); done; } &
done
wait"#;

#[test]
fn containers_with_libraries_of_their_own_have_whole_stacks_in_every_mode() -> Result<()> {
    if !Command::new("unshare").args(["--mount", "--pid", "--fork", "true"]).status()?.success() {
        return host::skip("modes::containers", "`unshare` makes no namespaces here");
    }
    in_every_mode(CONTAINERS, 96, |recorded| recorded.is_nearly_all_of("work", |line| line.has("main")))
}

#[test]
fn processes_of_milliseconds_have_whole_stacks_in_every_mode() -> Result<()> {
    in_every_mode(SHORT, 96, |recorded| recorded.is_nearly_all_of("work", |line| line.has("main")))
}

#[test]
fn copies_of_a_program_have_its_unwind_table_in_every_mode() -> Result<()> {
    in_every_mode(COPIES, 90, |_| Ok(()))
}

/// Runs a script in each mode. So many of 100 stacks are whole, and the rest holds as well.
fn in_every_mode(work: &str, whole: u64, rest: impl Fn(&Recorded) -> Result<()>) -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    for mode in MODES {
        let Some(recorded) = script(mode, work, "deep", program.path())? else { continue };
        let stacks = &recorded.report.header.stacks;
        ensure!(stacks.whole * 100 >= stacks.user * whole && stacks.user > 1500, "{mode:?}: {stacks:?}");
        rest(&recorded).with_context(|| format!("{mode:?}"))?;
    }
    Ok(())
}

#[test]
fn a_process_whose_first_thread_has_ended_keeps_its_names_in_every_mode() -> Result<()> {
    let Some(program) = compile("first_ended", OPTIMISED)? else { return Ok(()) };
    for mode in MODES {
        let Some(folded) = program_of_its_own(mode, "first_ended", program.path(), &[])? else { continue };
        let (named, all) = (folded.weight_of("after_main"), folded.weight());
        ensure!(named * 100 >= all * 90 && all > 500_000_000, "{mode:?}: {named} of {all}: {folded:?}");
    }
    Ok(())
}

#[test]
fn processes_that_share_memory_share_what_is_mapped_later_in_every_mode() -> Result<()> {
    let Some(program) = compile("shared_memory", OPTIMISED)? else { return Ok(()) };
    let Some(plugin) = CProgram::compile_plugin("plugin_one", 0)? else { return Ok(()) };
    for mode in MODES {
        let Some(folded) = program_of_its_own(mode, "shared_memory", program.path(), &[plugin.path()])?
        else {
            continue;
        };
        let lines = folded.lines.iter().filter(|line| follow(line, &["use_one", "plugin_one"]));
        let (named, all) = (lines.map(|line| line.weight).sum::<u64>(), folded.weight());
        ensure!(named * 100 >= all * 90 && all > 300_000_000, "{mode:?}: {named} of {all}: {folded:?}");
    }
    Ok(())
}

#[test]
fn a_stack_through_hundreds_of_libraries_is_whole_in_every_mode() -> Result<()> {
    const LIBRARIES: usize = 200;
    let Some(program) = compile("chain", OPTIMISED)? else { return Ok(()) };
    // Without a build id each copy is an object of its own.
    let flags = ["-O2", "-fomit-frame-pointer", "-shared", "-fPIC", "-Wl,--build-id=none"];
    let Some(library) = CProgram::compile_with("link", &flags)? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    for number in 0..LIBRARIES {
        fs::copy(library.path(), folder.path().join(format!("{number}.so")))?;
    }
    for mode in MODES {
        let Some(folded) = program_of_its_own(mode, "chain", program.path(), &[folder.path()])? else {
            continue;
        };
        let is_whole = |line: &&Line| count(line, "chain_link") == LIBRARIES && line.has("main");
        let burnt = folded.lines.iter().filter(|line| line.has("chain_link"));
        let all: u64 = burnt.clone().map(|line| line.weight).sum();
        let whole: u64 = burnt.filter(is_whole).map(|line| line.weight).sum();
        ensure!(whole * 100 >= all * 97 && all > 300_000_000, "{mode:?}: {whole} of {all}");
    }
    Ok(())
}

/// Runs a program of these arguments, the first of which are seconds, for a while in this mode; `None`, said aloud, where the mode is not there.
fn program_of_its_own(mode: Mode, comm: &str, program: &Path, rest: &[&Path]) -> Result<Option<Folded>> {
    let run = Bpfprof::clock(["--comm", comm]);
    // Declared in this order, so that the process ends before its cgroup is removed.
    let (group, target);
    let run = if mode == Mode::Launched {
        run.args(["--"]).args([program]).args(["2"]).args(rest)
    } else {
        let Some(made) = Cgroup::new("bpfprof-program")? else {
            host::skip("modes::program_of_its_own", "cgroup version 2 is not mounted")?;
            return Ok(None);
        };
        group = made;
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo $$ > "$1/cgroup.procs" && shift && exec "$@""#, "sh"]);
        command.arg(group.folder()).arg(program).arg("60").args(rest);
        target = Target::start(command, comm)?;
        let run = run.args(["-d", "2s"]);
        match mode {
            Mode::Process => run.args(["--pid", &target.pid()]),
            Mode::Cgroup => run.args(["--cgroup"]).args([group.folder()]),
            Mode::Launched | Mode::All => run.args(["--all"]),
        }
    };
    Ok(Some(run.succeed()?.folded()?))
}

/// Runs a script on the program, whose threads have this name, sampled in this mode; `None`, said aloud, where the mode is not there. The
/// script has a folder in `$1`, where a file `go` is when it is sampled, and the program in `$2`.
pub(crate) fn script(mode: Mode, script: &str, comm: &str, program: &Path) -> Result<Option<Recorded>> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let mut shell = Command::new("sh");
    let group = match mode {
        Mode::Cgroup => match Cgroup::new("bpfprof-modes")? {
            Some(group) => Some(group),
            None => {
                host::skip("modes::script", "cgroup version 2 is not mounted")?;
                return Ok(None);
            }
        },
        _ => None,
    };
    let run = Bpfprof::clock(["--comm", comm]).output(&json).output(&folded);
    let go = folder.path().join("go");
    if mode == Mode::Launched {
        fs::write(go, "")?;
        run.args(["--", "sh", "-c", script, "sh"]).args([folder.path(), program]).succeed()?;
    } else {
        let enter = r#"[ -z "$3" ] || echo $$ > "$3/cgroup.procs"; "#;
        shell.args(["-c", &format!("{enter}{script}"), "sh"]).args([folder.path(), program]);
        if let Some(group) = &group {
            shell.arg(group.folder());
        }
        let target = Target::start(shell, "sh")?;
        let run = match (mode, &group) {
            (_, Some(group)) => run.args(["--cgroup"]).args([group.folder()]),
            (Mode::Process, None) => run.args(["--pid", &target.pid()]),
            _ => run.args(["--all"]),
        };
        let mut running = run.start()?;
        running.sample_for(Duration::ZERO)?;
        fs::write(go, "")?;
        target.wait()?;
        if mode != Mode::Process {
            running.signal(Signal::INT)?;
        }
        let finished = running.wait()?;
        ensure!(finished.code() == Some(0), "{mode:?}: {}", finished.stderr);
    }
    Ok(Some(Recorded { report: Report::read(&json)?, folded: Folded::read(&folded)? }))
}
