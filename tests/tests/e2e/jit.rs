//! Code that programs make at run time has the name that it had when it was sampled, in each way to choose targets.

use anyhow::{Context, Result, ensure};

use crate::modes::{MODES, script};
use crate::unwind::{Recorded, compile};

#[test]
fn a_place_is_called_by_the_line_that_a_map_had_then() -> Result<()> {
    in_every_mode("map-append", |recorded| shares(recorded, 35, 35))
}

#[test]
fn a_map_that_is_written_anew_names_what_comes_after_it() -> Result<()> {
    in_every_mode("map-replace", |recorded| shares(recorded, 35, 35))
}

#[test]
fn a_forked_process_has_the_names_of_its_parent_as_of_the_fork() -> Result<()> {
    // The child has a third, the parent another before it writes the second name.
    in_every_mode("map-fork", |recorded| shares(recorded, 52, 24))?;
    in_every_mode("dump-fork", |recorded| shares(recorded, 58, 27))
}

#[test]
fn memory_that_becomes_writable_and_executable_in_turn_keeps_its_names() -> Result<()> {
    in_every_mode("map-turns", |recorded| {
        let (named, all) = (recorded.folded.weight_of("first_code"), recorded.folded.weight());
        ensure!(named * 100 >= all * 85, "{named} of {all}: {:?}", recorded.folded);
        Ok(())
    })
}

#[test]
fn a_dump_names_code_by_the_time_of_its_records() -> Result<()> {
    in_every_mode("dump", |recorded| {
        shares(recorded, 42, 42)?;
        for (name, number) in [("first_code", 11), ("second_code", 22)] {
            let function = recorded.report.function(name)?;
            let line = function.hottest_line.as_ref().map(|line| (line.file.as_str(), line.line));
            ensure!(line == Some(("made.lang", number)), "{function:?}");
        }
        Ok(())
    })
}

/// Runs the program that makes code in one of its ways, in each mode.
fn in_every_mode(way: &str, holds: impl Fn(&Recorded) -> Result<()>) -> Result<()> {
    // The code that it copies ends where its function does.
    let flags = ["-O1", "-fno-omit-frame-pointer", "-fno-stack-protector", "-fcf-protection=none"];
    let Some(program) = compile("jit", &flags)? else { return Ok(()) };
    let work = format!(r#"until [ -e "$1/go" ]; do sleep 0.02; done; cd "$1"; exec "$2" {way} 0.8"#);
    for mode in MODES {
        let Some(recorded) = script(mode, &work, "jit", program.path())? else { continue };
        holds(&recorded).with_context(|| format!("{way}, {mode:?}"))?;
    }
    Ok(())
}

/// The names have at least so many of 100 parts of the time.
fn shares(recorded: &Recorded, first: u64, second: u64) -> Result<()> {
    let all = recorded.folded.weight();
    for (name, least) in [("first_code", first), ("second_code", second)] {
        let named = recorded.folded.weight_of(name);
        ensure!(named * 100 >= all * least, "{name} has {named} of {all}: {:?}", recorded.folded);
    }
    Ok(())
}
