//! Functions without a name: they are rows of their own all the same.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{c_program, host};

use crate::program::{Workshop, run, workload};
use crate::recorded::Recorded;

/// Makes a stripped copy of an object.
type Strip = fn(&Workshop, &Path) -> Result<PathBuf>;

/// Whatever places of it were sampled, and whichever section describes it. Addresses are those of `nm`, which are not places in the file
/// where a linker puts segments apart.
#[test]
fn a_function_without_a_symbol_is_one_row_by_its_start() -> Result<()> {
    one_row(&["-Wl,-z,separate-code"], of_symbols)?;
    one_row(&["-Wl,-z,noseparate-code"], of_symbols)?;
    one_row(&["-Wl,--no-eh-frame-hdr"], of_symbols)?;
    one_row(&["-Wl,-z,separate-code"], of_section_headers)?;
    one_row(&["-g", "-fno-asynchronous-unwind-tables"], of_all_but_debug_frame)?;
    let Some(lld) = c_program::lld_of_rust()? else {
        return host::skip("stripped (lld)", "this Rust tool chain has no lld");
    };
    let lld: Vec<&str> = lld.iter().map(String::as_str).collect();
    one_row(&lld, of_symbols)
}

fn of_symbols(shop: &Workshop, object: &Path) -> Result<PathBuf> {
    shop.strip(object, "stripped.so")
}

fn of_all_but_debug_frame(shop: &Workshop, object: &Path) -> Result<PathBuf> {
    let stripped = shop.path("stripped.so");
    let mut objcopy = Command::new("objcopy");
    run(objcopy.args(["--strip-all", "--keep-section=.debug_frame"]).arg(object).arg(&stripped))?;
    Ok(stripped)
}

fn of_section_headers(shop: &Workshop, object: &Path) -> Result<PathBuf> {
    let stripped = shop.strip(object, "stripped.so")?;
    let mut bytes = fs::read(&stripped)?;
    // e_shoff; e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(&stripped, bytes)?;
    Ok(stripped)
}

fn one_row(flags: &[&str], strip: Strip) -> Result<()> {
    let shop = Workshop::new()?;
    let whole = shop.path("whole.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&whole).arg(workload("hidden.c"));
    run(gcc.args(flags))?;
    let (stripped, host) = (strip(&shop, &whole)?, shop.build("host", "burns_not", &[])?);
    let [host, library] = [&host, &stripped].map(|path| path.display().to_string());
    let recorded = Recorded::command([&host, "0.3", "turns", &library])?;
    let frames = recorded.folded.lines.iter().flat_map(|line| &line.frames);
    let unnamed = frames.filter_map(|frame| frame.strip_prefix("[stripped.so+0x")?.strip_suffix(']'));
    let unnamed: BTreeSet<u64> =
        unnamed.map(|address| u64::from_str_radix(address, 16)).collect::<Result<_, _>>()?;
    for function in ["burns", "calls"] {
        let code = code(&whole, function)?;
        let places: Vec<u64> = unnamed.range(code.clone()).copied().collect();
        ensure!(places == [code.start], "{flags:?}: {function} at {code:x?} is {places:x?}");
    }
    let burns = format!("[stripped.so+{:#x}]", code(&whole, "burns")?.start);
    let inside = recorded.folded.weight_where(|line| line.frames.contains(&burns));
    ensure!(inside as f64 > 0.8 * recorded.folded.weight() as f64, "{flags:?}: {inside} in {burns}");
    // It has no name, and the header says so.
    ensure!(recorded.stderr.contains("stripped.so"), "{}", recorded.stderr);
    Ok(())
}

/// Addresses of a function, by the symbol table.
fn code(object: &Path, function: &str) -> Result<Range<u64>> {
    let nm = Command::new("nm").arg("-S").arg(object).output().context("running nm")?;
    let text = String::from_utf8_lossy(&nm.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {function}")));
    let mut words = line.context("it has no such function")?.split(' ');
    let mut number = || u64::from_str_radix(words.next().unwrap_or_default(), 16);
    let (start, len) = (number()?, number()?);
    Ok(start..start + len)
}
