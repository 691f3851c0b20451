//! Frames that call-frame information describes by more than two registers, and guesses where it describes none.

use anyhow::{Result, ensure};

use crate::unwind::{CLOCK, OPTIMISED, compile, follow, record};

#[test]
fn frames_are_found_by_what_call_frame_information_names() -> Result<()> {
    let Some(program) = compile("rules", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["4000", "rbx", "word", "large"], CLOCK)?;
    recorded.is_whole()?;
    for callers in [
        &["main", "by_rbx", "uses_rbx", "work"][..],
        &["main", "by_word", "work"],
        &["main", "by_large_frame", "work"],
    ] {
        let share = recorded.weight_where(|line| follow(line, callers));
        ensure!(share * 4 > recorded.folded.weight(), "{callers:?}: {share} of {:?}", recorded.folded);
    }
    Ok(())
}

#[test]
fn a_stack_that_frame_pointers_led_through_is_guessed_and_not_whole() -> Result<()> {
    let Some(program) = compile("rules", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["3000", "undescribed", "word"], CLOCK)?;
    let stacks = &recorded.report.header.stacks;
    ensure!(stacks.guessed * 100 > stacks.user * 40 && stacks.guessed * 100 < stacks.user * 60, "{stacks:?}");
    ensure!((stacks.whole + stacks.guessed) * 100 >= stacks.user * 99, "{stacks:?}");
    let place = "in code without call-frame information";
    ensure!(
        stacks.guesses.iter().any(|(found, samples)| found == place && *samples * 100 > stacks.guessed * 99)
    );
    Ok(())
}
