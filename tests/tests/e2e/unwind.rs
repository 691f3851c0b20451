//! User stacks of code without frame pointers: whole, and made of the right callers.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::c_program::CProgram;
use bpfprof_tests::folded::{Line, is_function, is_kernel};
use bpfprof_tests::{Bpfprof, Folded, Report, host};

/// What distributions compile C with.
pub(crate) const OPTIMISED: &[&str] = &["-O2", "-fomit-frame-pointer", "-no-pie", "-fno-pie"];

/// No call-frame information of its own, for debuggers neither.
const WITHOUT_TABLES: &[&str] = &[
    "-O2",
    "-g0",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-omit-frame-pointer",
    "-no-pie",
];

/// Call-frame information for debuggers alone. The files that every program begins with bring a small `.eh_frame` all the same.
const WITH_DEBUG_FRAME: &[&str] = &[
    "-O2",
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-no-pie",
    "-fno-pie",
];

#[test]
fn rust_without_frame_pointers_has_whole_stacks() -> Result<()> {
    for (workload, arguments) in [
        ("matrix", &["--seconds", "6"][..]),
        ("shares", &["--seconds", "6"]),
        ("spin", &["alpha,beta,gamma", "3", "--threads", "3"]),
    ] {
        let recorded = record(&host::workload_without_frame_pointers(workload), arguments, CLOCK)?;
        recorded.is_whole().context(workload)?;
        if workload == "matrix" {
            // The last of the 41 calls is a jump.
            let chain = recorded.folded.weight_of("compute");
            let whole = recorded.weight_where(|line| count(line, "deep_chain") == 40 && line.has("main"));
            ensure!(whole * 100 >= chain * 99 && chain > 0, "40 calls in {whole} of {chain}");
        }
    }
    Ok(())
}

#[test]
fn a_recursion_within_the_limit_is_whole() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["400", "3000"], CLOCK)?;
    recorded.is_whole()?;
    recorded.is_nearly_all_of("work", |line| count(line, "descend") == 400 && line.has("main"))
}

#[test]
fn a_deeper_recursion_keeps_its_innermost_frames_and_says_so() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["5000", "1500"], CLOCK)?;
    let stacks = &recorded.report.header.stacks;
    let deeper = recorded.cut("deeper than 512 frames");
    ensure!(deeper * 100 >= stacks.user * 98 && deeper > 500, "{stacks:?}");
    // The innermost frames are of work and of the clock it reads.
    recorded.is_nearly_all_of("work", |line| (507..512).contains(&count(line, "descend")))?;
    ensure!(recorded.folded.weight_of("main") == 0, "the outermost frames are there too");
    Ok(())
}

#[test]
fn frames_of_any_size_and_alignment_are_whole() -> Result<()> {
    frames_are_whole(OPTIMISED)
}

#[test]
fn where_eh_frame_is_silent_debug_frame_says_it() -> Result<()> {
    frames_are_whole(WITH_DEBUG_FRAME)?;
    frames_are_whole(&[WITH_DEBUG_FRAME, &["-gz=zlib"]].concat())
}

#[test]
fn a_stack_may_change_between_eh_frame_and_debug_frame() -> Result<()> {
    let sections = "-ffunction-sections";
    let Some(between) = compile("between", &[WITH_DEBUG_FRAME, &["-c", sections]].concat())? else {
        return Ok(());
    };
    // A function of it is dropped, but not what describes it.
    let linking = [path(between.path())?, sections, "-Wl,--gc-sections"];
    let Some(program) = compile("around", &[OPTIMISED, &linking].concat())? else { return Ok(()) };
    let recorded = record(program.path(), &["3000"], CLOCK)?;
    recorded.is_whole()?;
    let functions = ["main", "outer_between", "inner_between", "work_inside"];
    recorded.is_nearly_all_of("work_inside", |line| follow(line, &functions))
}

fn frames_are_whole(flags: &[&str]) -> Result<()> {
    let Some(program) = compile("frames", flags)? else { return Ok(()) };
    let recorded = record(program.path(), &["4000"], CLOCK)?;
    recorded.is_whole()?;
    let mut callers = vec![
        "with_alloca",
        "with_array_of_any_length",
        "with_64_kilobytes",
        "with_200_kilobytes",
        "with_aligned_local",
    ];
    if cfg!(target_arch = "x86_64") {
        callers.push("with_realigned_stack");
    }
    for caller in callers {
        let through = recorded.weight_where(|line| follow(line, &["main", caller, "work"]));
        ensure!(through * 12 > recorded.folded.weight(), "{caller}: {through}");
    }
    recorded.is_nearly_all_of("work", |line| {
        line.frames.windows(2).any(|two| two[0].starts_with("with_") && is_function(&two[1], "work"))
    })
}

#[test]
fn a_stack_may_be_switched_to_a_lower_and_to_a_higher_address() -> Result<()> {
    let Some(program) = compile("switched", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["3000"], CLOCK)?;
    recorded.is_whole()?;
    let lower = recorded.weight_where(|line| follow(line, &["main", "call_on", "on_lower_stack", "work"]));
    let higher = ["main", "call_on", "between", "call_on", "on_higher_stack", "work"];
    let higher = recorded.weight_where(|line| follow(line, &higher));
    let all = recorded.folded.weight();
    ensure!(lower * 100 > all * 40 && higher * 100 > all * 40, "{lower} and {higher} of {all}");
    Ok(())
}

/// The context has a stack of its own, on which the first function was never called.
#[test]
fn a_context_of_its_own_shows_its_own_functions_alone() -> Result<()> {
    let Some(program) = compile("switched", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["2000", "context"], CLOCK)?;
    recorded.is_nearly_all_of("work", |line| line.has("in_own_context") && !line.has("main"))
}

#[test]
fn below_a_signal_handler_are_the_frames_that_it_interrupted() -> Result<()> {
    let Some(program) = compile("handlers", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["3000"], CLOCK)?;
    recorded.is_whole()?;
    // Between handler and interrupted function is the trampoline of the signal.
    let trampoline = if cfg!(target_arch = "x86_64") { "__restore_rt" } else { "__kernel_rt_sigreturn" };
    let handled = |interrupted, handler| {
        recorded.weight_where(|line| {
            let position = |function| line.frames.iter().position(|frame| is_function(frame, function));
            let (Some(below), Some(above)) = (position(interrupted), position(handler)) else { return false };
            above == below + 2
                && is_function(&line.frames[below + 1], trampoline)
                && position("main") < Some(below)
                && line.has("work_in_handler")
        })
    };
    let (faults, alarms) = (handled("faulting", "on_fault"), handled("interrupted", "on_timer"));
    let all = recorded.folded.weight();
    ensure!(faults * 50 > all && alarms * 50 > all, "{faults} and {alarms} of {all}");
    recorded.is_nearly_all_of("work_in_handler", |line| line.has("faulting") || line.has("interrupted"))
}

#[test]
fn the_c_library_in_the_middle_threads_and_system_calls() -> Result<()> {
    let Some(program) = compile("through_library", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["4000"], CLOCK)?;
    recorded.is_whole()?;
    recorded.is_nearly_all_of("compare", |line| line.has("main") && line.has("sort"))?;
    recorded.is_nearly_all_of("in_thread", |line| !line.has("main"))?;
    let is_in_kernel = |line: &Line| line.frames.last().is_some_and(|frame| is_kernel(frame));
    let reading = recorded.folded.weight_of("read_zeros");
    let in_kernel = recorded.weight_where(|line| follow(line, &["main", "read_zeros"]) && is_in_kernel(line));
    ensure!(in_kernel * 10 > reading * 8 && reading > 0, "{in_kernel} of {reading} in the kernel");
    Ok(())
}

#[test]
fn code_without_unwind_tables_is_walked_by_frame_pointers() -> Result<()> {
    let Some(program) = compile("deep", WITHOUT_TABLES)? else { return Ok(()) };
    let recorded = record(program.path(), &["100", "3000"], CLOCK)?;
    let stacks = &recorded.report.header.stacks;
    let found = stacks.whole + stacks.guessed;
    ensure!(found * 1000 >= stacks.user * 995 && stacks.guessed * 100 > found * 98, "{stacks:?}");
    recorded.is_nearly_all_of("work", |line| count(line, "descend") == 100 && line.has("main"))
}

#[test]
fn a_stripped_program_has_whole_stacks() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    program.strip()?;
    let recorded = record(program.path(), &["100", "3000"], CLOCK)?;
    recorded.is_whole()?;
    let frames = recorded.weight_where(|line| line.frames.len() > 100);
    ensure!(frames * 100 >= recorded.folded.weight() * 95, "{frames} of {}", recorded.folded.weight());
    Ok(())
}

#[test]
fn the_first_instruction_of_a_function_leads_to_its_caller() -> Result<()> {
    const CALLS: u64 = 3000;
    let Some(program) = compile("called", OPTIMISED)? else { return Ok(()) };
    for place in ["counted", "counted_body"] {
        let event = program.breakpoint(place)?;
        let recorded = record(program.path(), &[&CALLS.to_string()], &["-e", &event, "-c", "1"])?;
        let Recorded { report, .. } = &recorded;
        ensure!(report.header.samples == CALLS, "{place}: {:?}", report.header);
        recorded.is_whole()?;
        let by = |caller| recorded.weight_where(|line| follow(line, &["main", caller, "counted"]));
        let calls = (by("caller_a"), by("caller_b"));
        ensure!(calls == (CALLS / 3 * 2, CALLS / 3), "{place}: {calls:?}");
    }
    Ok(())
}

#[test]
fn plugins_at_one_place_in_turn_keep_their_names_apart() -> Result<()> {
    let Some(program) = compile("plugins", OPTIMISED)? else { return Ok(()) };
    let plugins = [CProgram::compile_plugin("plugin_one", 0)?, CProgram::compile_plugin("plugin_two", 0)?];
    let [Some(one), Some(two)] = plugins else { return Ok(()) };
    let (one, two) = (path(one.path())?, path(two.path())?);
    let recorded = record(program.path(), &["4000", one, two], CLOCK)?;
    let through = |user, plugin| recorded.weight_where(|line| line.has(user) && line.has(plugin));
    ensure!(through("use_one", "plugin_two") == 0, "{:?}", recorded.folded);
    ensure!(through("use_two", "plugin_one") == 0, "{:?}", recorded.folded);
    let all = recorded.folded.weight();
    for (user, plugin) in [("use_one", "plugin_one"), ("use_two", "plugin_two")] {
        let found = through(user, plugin);
        ensure!(found * 100 > all * 40, "{plugin}: {found} of {all}: {:?}", recorded.report.header.stacks);
    }
    Ok(())
}

#[test]
fn processes_of_milliseconds_have_whole_stacks() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    let script = r#"i=0; while [ $i -lt 1000 ]; do "$1" 20 $((2 + i % 19)); i=$((i + 1)); done"#;
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::clock(["--comm", "deep"]).output(&json).output(&folded);
    run.args(["--", "sh", "-c", script, "sh"]).args([program.path()]).succeed()?;
    let recorded = Recorded { report: Report::read(&json)?, folded: Folded::read(&folded)? };
    let stacks = &recorded.report.header.stacks;
    ensure!(stacks.whole * 100 >= stacks.user * 98 && stacks.user > 8000, "{stacks:?}");
    recorded.is_nearly_all_of("work", |line| count(line, "descend") == 20 && line.has("main"))
}

#[test]
fn a_program_that_execve_has_thrown_away_has_no_stack() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folded = folder.path().join("x.folded");
    let run = Bpfprof::new(["-e", "cpu-clock", "-F", "4999"]).output(&folded);
    run.shell("i=0; while [ $i -lt 500 ]; do sh -c :; i=$((i + 1)); done").succeed()?;
    let folded = Folded::read(&folded)?;
    let is_between = |line: &Line| {
        let in_kernel =
            |function: &str| line.frames.iter().any(|frame| frame.ends_with(&format!("{function}_[k]")));
        in_kernel("_sys_execve") && (in_kernel("exit_mmap") || in_kernel("setup_arg_pages"))
    };
    let (all, kernel_only) = (
        folded.weight_where(is_between),
        folded.weight_where(|line| is_between(line) && line.frames.iter().all(|frame| is_kernel(frame))),
    );
    ensure!(all > 0 && kernel_only == all, "{kernel_only} of {all}");
    Ok(())
}

#[test]
fn the_way_to_unwind_can_be_chosen() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    let by = |way| {
        let recorded = record(program.path(), &["50", "2000"], &["-e", "cpu-clock", "--unwind", way]);
        recorded.with_context(|| format!("--unwind {way}"))
    };
    by("dwarf")?.is_whole()?;
    by("auto")?.is_whole()?;
    let fp = by("fp")?.report.header.stacks;
    ensure!(fp.whole * 10 < fp.user && fp.user > 1000, "{fp:?}");
    let none = by("none")?;
    ensure!(none.report.header.stacks.user == 0, "{:?}", none.report.header.stacks);
    ensure!(none.folded.weight_of("descend") == 0, "{:?}", none.folded);
    Ok(())
}

#[test]
fn the_kernels_virtual_object_leads_to_its_caller() -> Result<()> {
    let Some(program) = compile("clock", OPTIMISED)? else { return Ok(()) };
    let recorded = record(program.path(), &["2000"], CLOCK)?;
    recorded.is_whole()?;
    let Report { header, functions, .. } = &recorded.report;
    let inside: u64 = functions
        .iter()
        .filter(|function| function.object == "[vdso]")
        .map(|function| function.own.samples)
        .sum();
    ensure!(inside * 5 > header.samples, "{inside} of {}", header.samples);
    recorded.is_nearly_all_of("clock_gettime", |line| line.has("ask") && line.has("main"))
}

#[test]
fn a_kernel_that_refuses_the_program_gets_a_smaller_one_and_the_header_says_so() -> Result<()> {
    let Some(program) = compile("deep", OPTIMISED)? else { return Ok(()) };
    let record = |depth, refused| {
        record(program.path(), &[depth, "1500"], &["-e", "cpu-clock", "--refuse-programs", refused])
    };
    let deep = record("400", "1")?;
    let stacks = &deep.report.header.stacks;
    let deeper = deep.cut("deeper than 127 frames");
    ensure!(deeper * 100 >= stacks.user * 98 && deeper > 500 && stacks.frame_limit == 127, "{stacks:?}");
    let note = "stacks deeper than 127 frames are cut: this kernel refused the larger program";
    ensure!(deep.notes_say(note), "{:?}", deep.report.header.notes);
    record("100", "1")?.is_whole()?;

    let by_pointers = record("100", "2")?;
    let stacks = &by_pointers.report.header.stacks;
    ensure!(stacks.whole * 10 < stacks.user && stacks.user > 500, "{stacks:?}");
    ensure!(by_pointers.notes_say("frame pointers alone"), "{:?}", by_pointers.report.header.notes);

    // What was asked for by name is not replaced.
    let by_name =
        Bpfprof::clock(["--unwind", "dwarf", "--refuse-programs", "2", "--"]).args([program.path()]);
    by_name.run()?.expect_refusal(1, &["the kernel refused bpfprof's BPF programs"])
}

/// The tables alone go no further than they reach; frame pointers do.
#[test]
fn tables_alone_do_not_follow_frame_pointers() -> Result<()> {
    let Some(program) = compile("deep", WITHOUT_TABLES)? else { return Ok(()) };
    let by_tables = record(program.path(), &["50", "1500"], &["-e", "cpu-clock", "--unwind", "dwarf"])?;
    let stacks = &by_tables.report.header.stacks;
    let without = by_tables.cut("in code without call-frame information");
    ensure!(without * 100 >= stacks.user * 98 && without > 500, "{stacks:?}");
    Ok(())
}

pub(crate) const CLOCK: &[&str] = &["-e", "cpu-clock"];

pub(crate) struct Recorded {
    pub(crate) report: Report,
    pub(crate) folded: Folded,
}

impl Recorded {
    /// At least 99.5 % of the user stacks reach their root.
    pub(crate) fn is_whole(&self) -> Result<()> {
        let stacks = &self.report.header.stacks;
        ensure!(stacks.whole * 1000 >= stacks.user * 995 && stacks.whole > 0, "{stacks:?}");
        Ok(())
    }

    /// Nearly all stacks with this function are so.
    pub(crate) fn is_nearly_all_of(&self, function: &str, so: impl Fn(&Line) -> bool) -> Result<()> {
        let (all, good) =
            (self.folded.weight_of(function), self.weight_where(|line| line.has(function) && so(line)));
        ensure!(
            good * 100 >= all * 99 && good > 0,
            "{good} of {all} with {function}: {}",
            self.odd(function, so)
        );
        Ok(())
    }

    fn odd(&self, function: &str, so: impl Fn(&Line) -> bool) -> String {
        let odd = self.folded.lines.iter().filter(|line| line.has(function) && !so(line));
        odd.map(|line| format!("{} {}\n", line.frames.join(";"), line.weight)).collect()
    }

    pub(crate) fn weight_where(&self, wanted: impl Fn(&Line) -> bool) -> u64 {
        self.folded.weight_where(wanted)
    }

    fn notes_say(&self, words: &str) -> bool {
        self.report.header.notes.iter().any(|note| note.contains(words))
    }

    /// Samples whose user stack is cut for this reason.
    pub(crate) fn cut(&self, reason: &str) -> u64 {
        let cut = self.report.header.stacks.cut.iter();
        cut.filter(|(found, _)| found == reason).map(|(_, samples)| samples).sum()
    }
}

pub(crate) fn record(program: &Path, arguments: &[&str], options: &[&str]) -> Result<Recorded> {
    let folder = tempfile::tempdir()?;
    let (json, folded) = (folder.path().join("x.json"), folder.path().join("x.folded"));
    let run = Bpfprof::new(options).output(&json).output(&folded);
    run.args(["--"]).args([program]).args(arguments).succeed()?;
    Ok(Recorded { report: Report::read(&json)?, folded: Folded::read(&folded)? })
}

pub(crate) fn compile(name: &str, flags: &[&str]) -> Result<Option<CProgram>> {
    let program = CProgram::compile_with(name, flags)?;
    if program.is_none() {
        host::skip(&format!("unwind::{name}"), "`cc` or `nm` is not installed")?;
    }
    Ok(program)
}

/// Frames of this function.
pub(crate) fn count(line: &Line, function: &str) -> usize {
    line.frames.iter().filter(|frame| is_function(frame, function)).count()
}

/// Whether these functions call each other directly.
pub(crate) fn follow(line: &Line, functions: &[&str]) -> bool {
    line.frames
        .windows(functions.len())
        .any(|frames| frames.iter().zip(functions).all(|(frame, function)| is_function(frame, function)))
}

pub(crate) fn path(file: &Path) -> Result<&str> {
    file.to_str().context("a path that is no text")
}
