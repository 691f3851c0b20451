//! Breakpoints as the event: hardware events whose number and place are known exactly.

use anyhow::Result;
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::{Bpfprof, Folded, Report, host};

const CALLS: u64 = 3000;

#[test]
fn every_execution_is_a_sample_in_its_function_with_its_caller() -> Result<()> {
    let Some(program) = compile("every_execution_is_a_sample_in_its_function_with_its_caller")? else {
        return Ok(());
    };
    // The first instruction: the frame pointer is still the caller's.
    callers_are_exact(&program, "counted")
}

#[test]
fn frame_pointers_lead_to_the_caller() -> Result<()> {
    let Some(program) = compile("frame_pointers_lead_to_the_caller")? else { return Ok(()) };
    callers_are_exact(&program, "counted_body")
}

#[test]
fn a_period_divides_the_samples_and_keeps_the_weight() -> Result<()> {
    let Some(program) = compile("a_period_divides_the_samples_and_keeps_the_weight")? else { return Ok(()) };
    // Prime to the three calls of a round, so that both callers are met.
    let (report, folded) = record(&program, "counted", &["-c", "10"])?;
    let cpus = u64::try_from(host::online_cpus())?;
    // Each CPU may end with up to nine executions that are no whole period yet.
    let least = CALLS / 10 - (cpus - 1);
    assert!((least..=CALLS / 10).contains(&report.header.samples), "{}", report.header.samples);
    assert_eq!(report.header.weight, 10 * report.header.samples);
    assert_eq!(folded.weight(), report.header.weight);
    Ok(())
}

#[test]
fn the_first_instruction_of_a_launched_command_is_seen() -> Result<()> {
    let Some(program) = compile("the_first_instruction_of_a_launched_command_is_seen")? else {
        return Ok(());
    };
    for function in ["_start", "main"] {
        let (report, folded) = record(&program, function, &["-c", "1"])?;
        assert_eq!(report.header.samples, 1, "{function}");
        assert!(folded.lines.iter().all(|line| line.ends_in(function)), "{folded:?}");
    }
    Ok(())
}

fn callers_are_exact(program: &CProgram, place: &str) -> Result<()> {
    let (report, folded) = record(program, place, &["-c", "1"])?;
    assert_eq!((report.header.samples, report.header.weight), (CALLS, CALLS));
    assert_eq!(folded.weight(), CALLS);
    assert_eq!(folded.weight_where(|line| line.ends_in("counted")), CALLS, "{folded:?}");
    assert_eq!(report.function("counted")?.own.samples, CALLS);
    let called_by = |caller| folded.weight_where(|line| line.has(caller) && line.has("main"));
    assert_eq!((called_by("caller_a"), called_by("caller_b")), (CALLS / 3 * 2, CALLS / 3), "{folded:?}");
    assert_eq!((report.header.lost.samples, report.header.lost.throttles), (0, 0));
    Ok(())
}

fn compile(test: &str) -> Result<Option<CProgram>> {
    let program = CProgram::compile("called")?;
    if program.is_none() {
        host::skip(&format!("breakpoint::{test}"), "`cc` or `nm` is not installed")?;
    }
    Ok(program)
}

fn record(program: &CProgram, place: &str, rate: &[&str]) -> Result<(Report, Folded)> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::new(["-e", &program.breakpoint(place)?]).args(rate).output(&json).output(&folded);
    run.args(["--"]).args([program.path()]).args([CALLS.to_string()]).succeed()?;
    Ok((Report::read(&json)?, Folded::read(&folded)?))
}
