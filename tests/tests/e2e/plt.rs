//! PLTs of every linker: at each instruction, the caller of an entry is found.

use anyhow::{Context, Result, ensure};
use bpfprof_tests::c_program::{self, CProgram};
use bpfprof_tests::{Report, host};

use crate::unwind::{OPTIMISED, Recorded, compile, follow, record};

/// The function calls `getppid` so often.
const CALLS: u64 = 10;

/// What of a PLT a call comes through.
#[derive(Default)]
struct Way<'a> {
    /// How often each instruction of the entry runs, in their order. At the first call the function is not resolved yet, so that what then leads
    /// to the dynamic linker runs once.
    entry: &'a [u64],
    /// The same of the header.
    header: &'a [u64],
}

/// Resolved at the first call: jmp *word; push number; jmp header; and there push word; jmp *word.
const LAZY: Way<'_> = Way { entry: &[CALLS, 1, 1], header: &[1, 1] };

/// Resolved when the program starts: jmp *word.
const NOW: Way<'_> = Way { entry: &[CALLS], header: &[] };

/// endbr64; jmp *word. What resolves the function lies elsewhere.
const TRACKED: Way<'_> = Way { entry: &[CALLS, CALLS], header: &[1, 1] };

#[test]
fn gnu_ld() -> Result<()> {
    let Some(linker) = linker("gnu_ld", "ld.bfd", "-fuse-ld=bfd")? else { return Ok(()) };
    both_ways(&[linker])?;
    if cfg!(target_arch = "x86_64") {
        leads_to_its_caller(&[linker, "-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,lazy"], &TRACKED)?;
    }
    Ok(())
}

#[test]
fn gold() -> Result<()> {
    let Some(linker) = linker("gold", "ld.gold", "-fuse-ld=gold")? else { return Ok(()) };
    leads_to_its_caller(&[linker, "-Wl,-z,lazy"], &LAZY.here())
}

#[test]
fn mold() -> Result<()> {
    let Some(linker) = linker("mold", "ld.mold", "-fuse-ld=mold")? else { return Ok(()) };
    // endbr64, in older versions; mov number, %r11d; jmp *word. In the header: endbr64; push %r11; push word; jmp *word.
    let mut way = Way { entry: &[CALLS, CALLS], header: &[1, 1, 1, 1] }.here();
    leads_to_its_caller(&[linker, "-Wl,-z,lazy"], &way)?;
    way.header = &[];
    leads_to_its_caller(&[linker, "-Wl,-z,now"], &way)
}

#[test]
fn lld() -> Result<()> {
    let Some(lld) = c_program::lld_of_rust()? else {
        return host::skip("plt::lld", "this Rust tool chain has no lld");
    };
    let lld: Vec<&str> = lld.iter().map(String::as_str).collect();
    both_ways(&lld)?;
    if cfg!(target_arch = "x86_64") {
        let with = |flags: &[&'static str]| [&lld, flags].concat();
        let tracked = with(&["-fcf-protection", "-Wl,-z,force-ibt", "-Wl,-z,lazy"]);
        leads_to_its_caller(&tracked, &TRACKED)?;
        // mov word, %r11; call. What follows runs at no time, or when the function is not resolved yet: jmp; push number; jmp header.
        // There: push word; mov word, %r11; call; and what is called: mov %r11, (%rsp).
        let way = Way { entry: &[CALLS, CALLS, 0, 1, 1], header: &[1, 1, 1, 0, 0, 0, CALLS + 1] };
        leads_to_its_caller(&with(&["-Wl,-z,retpolineplt", "-Wl,-z,lazy"]), &way)?;
        // mov word, %r11; jmp header. There: call; and what is called: mov %r11, (%rsp); ret.
        let way = Way { entry: &[CALLS, CALLS], header: &[CALLS, 0, 0, 0, CALLS, CALLS] };
        leads_to_its_caller(&with(&["-Wl,-z,retpolineplt", "-Wl,-z,now"]), &way)?;
    }
    Ok(())
}

impl Way<'_> {
    /// As far as it is known for this machine.
    fn here(self) -> Self {
        if cfg!(target_arch = "x86_64") { self } else { NOW }
    }
}

/// The flag, if the linker is installed.
fn linker(test: &str, program: &str, flag: &'static str) -> Result<Option<&'static str>> {
    if c_program::starts(program) {
        return Ok(Some(flag));
    }
    host::skip(&format!("plt::{test}"), &format!("`{program}` is not installed"))?;
    Ok(None)
}

/// Resolved at the first call, and when the program starts.
fn both_ways(linking: &[&str]) -> Result<()> {
    leads_to_its_caller(&[linking, &["-Wl,-z,lazy"]].concat(), &LAZY.here())?;
    leads_to_its_caller(&[linking, &["-Wl,-z,now"]].concat(), &NOW)
}

/// Stops at each instruction that runs on the way from the entry that leads to `getppid` of the C library.
fn leads_to_its_caller(linking: &[&str], way: &Way<'_>) -> Result<()> {
    /// No entry and no header is longer.
    const LEN: u64 = 48;
    let runs = |(_, calls): &(_, &u64)| **calls > 0;
    let flags = [OPTIMISED, linking].concat();
    let Some(program) = compile("through_library", &flags)? else { return Ok(()) };
    let entry = program.instructions(program.called_by("call_library")?, LEN)?;
    for ((address, instruction), calls) in entry.iter().zip(way.entry).filter(runs) {
        let recorded =
            stop_at(&program, *address, *calls).with_context(|| format!("{linking:?}: {instruction}"))?;
        let named =
            recorded.weight_where(|line| line.frames.last().is_some_and(|leaf| leaf.starts_with("getppid")));
        ensure!(named == *calls, "{linking:?}: {instruction}: {:?}", recorded.folded);
    }
    ensure!(entry.len() >= way.entry.len(), "{linking:?}: {entry:?}");
    if way.header.is_empty() {
        return Ok(());
    }
    let header = program.section(".plt")?.context("a program without .plt")?;
    let header = program.instructions(header, LEN)?;
    for ((address, instruction), calls) in header.iter().zip(way.header).filter(runs) {
        stop_at(&program, *address, *calls)
            .with_context(|| format!("{linking:?}: {instruction} of the header"))?;
    }
    ensure!(header.len() >= way.header.len(), "{linking:?}: {header:?}");
    Ok(())
}

/// All stacks are whole, and so many are of this function. Other functions may come through the header, too.
fn stop_at(program: &CProgram, address: u64, calls: u64) -> Result<Recorded> {
    let event = format!("mem:{address:#x}:x");
    let recorded = record(program.path(), &["0"], &["-e", &event, "-c", "1"])?;
    let Report { header, .. } = &recorded.report;
    ensure!(header.stacks.whole == header.samples, "{header:?}");
    let called = recorded.weight_where(|line| follow(line, &["main", "call_library"]));
    ensure!(called == calls, "{called} calls and not {calls}: {:?}", recorded.folded);
    Ok(recorded)
}
