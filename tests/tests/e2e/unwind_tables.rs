//! Unwind tables: why an object has none, and that they make room for each other.

use anyhow::{Result, ensure};
use bpfprof_tests::Bpfprof;
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::report::Lack;

use crate::unwind::{CLOCK, Recorded, compile, path, record};

/// Functions of a plugin with so many rows that two do not fit into 4 MiB.
const LARGE: u32 = 150_000;

const WITH_FRAME_POINTERS: &[&str] =
    &["-O2", "-fno-omit-frame-pointer", "-no-pie", "-fno-pie", "-Wl,--no-eh-frame-hdr"];

#[test]
fn an_object_without_call_frame_information_is_named() -> Result<()> {
    let Some(program) = compile("deep", WITH_FRAME_POINTERS)? else { return Ok(()) };
    program.rewrite(&["--remove-section=.eh_frame"])?;
    let recorded = record(program.path(), &["20", "1500"], CLOCK)?;
    let lack = lack_of(&recorded, path(program.path())?, "no call-frame information")?;
    ensure!(lack.samples * 100 >= recorded.report.header.stacks.user * 95 && lack.samples > 500, "{lack:?}");
    // Frame pointers stand in for it.
    recorded.is_nearly_all_of("work", |line| line.has("main"))
}

#[test]
fn an_object_with_malformed_call_frame_information_is_named() -> Result<()> {
    let flags = ["-O2", "-fno-omit-frame-pointer", "-no-pie", "-fno-pie"];
    let Some(program) = compile("deep", &flags)? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let garbage = folder.path().join("garbage");
    std::fs::write(&garbage, [0xff; 64])?;
    program.rewrite(&["--update-section", &format!(".eh_frame_hdr={}", path(&garbage)?)])?;
    let recorded = record(program.path(), &["20", "1500"], CLOCK)?;
    let lack = lack_of(&recorded, path(program.path())?, "malformed")?;
    ensure!(lack.samples > 500, "{lack:?}");
    Ok(())
}

#[test]
fn an_object_whose_table_came_late_is_named() -> Result<()> {
    let (Some(program), Some(plugin)) = (compile("in_turn", &["-O2"])?, large("plugin_one")?) else {
        return Ok(());
    };
    let often = [CLOCK, &["-F", "5000"]].concat();
    let recorded = record(program.path(), &["2000", path(plugin.path())?], &often)?;
    let lack = lack_of(&recorded, path(plugin.path())?, "still being compiled")?;
    let cut = recorded.cut("in an object without unwind table");
    ensure!(lack.samples * 10 >= cut * 9, "{lack:?}: {:?}", recorded.report.header.stacks);
    Ok(())
}

#[test]
fn a_table_that_is_not_used_makes_room_for_another() -> Result<()> {
    let Some(program) = compile("in_turn", &["-O2"])? else { return Ok(()) };
    let (Some(one), Some(two)) = (large("plugin_one")?, large("plugin_two")?) else { return Ok(()) };
    let (one, two) = (path(one.path())?, path(two.path())?);
    let small = [CLOCK, &["--unwind-memory", "4"]].concat();
    let recorded = record(program.path(), &["8000", one, two], &small)?;
    for plugin in ["plugin_one", "plugin_two"] {
        let all = recorded.folded.weight_of(plugin);
        let whole =
            recorded.weight_where(|line| line.has(plugin) && line.has("use_plugin") && line.has("main"));
        ensure!(whole * 100 > all * 25, "{plugin}: {whole} of {all}: {:?}", recorded.report.header.stacks);
    }
    // It waits until the first is idle, or is compiled so slowly that it need not.
    let waits = lack_of(&recorded, two, "--unwind-memory 4");
    waits.or_else(|_| lack_of(&recorded, two, "still being compiled")).map(drop)
}

#[test]
fn two_tables_in_use_do_not_push_each_other_out() -> Result<()> {
    let Some(program) = compile("in_turn", &["-O2"])? else { return Ok(()) };
    let (Some(one), Some(two)) = (large("plugin_one")?, large("plugin_two")?) else { return Ok(()) };
    let script = r#""$0" 9000 "$1" & "$0" 9000 "$2" & wait"#;
    let finished = Bpfprof::clock(["-v", "--unwind-memory", "4", "--", "sh", "-c", script])
        .args([program.path(), one.path(), two.path()])
        .succeed()?;
    // One, if the machine kept one of them from running for as long as makes a table idle. In turn they would every two seconds.
    let few = ["0 made room for others", "1 made room for others"];
    ensure!(few.iter().any(|few| finished.stderr.contains(&format!("; {few}"))), "{}", finished.stderr);
    ensure!(!finished.stderr.contains(" 0 did not fit"), "{}", finished.stderr);
    Ok(())
}

fn large(entry: &str) -> Result<Option<CProgram>> {
    CProgram::compile_plugin(entry, LARGE)
}

/// What is said of this object, and has these words.
fn lack_of<'a>(recorded: &'a Recorded, path: &str, words: &str) -> Result<&'a Lack> {
    let lacks = &recorded.report.header.stacks.without_table;
    match lacks.iter().find(|lack| lack.object == path && lack.reason.contains(words)) {
        Some(lack) => Ok(lack),
        None => anyhow::bail!("{path} with {words} is not among {lacks:?}"),
    }
}
