//! Names of functions that were inlined: they have no symbol, and debug information may have no linkage name for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use bpfprof_tests::host;

use crate::program::{Workshop, is_installed, run, workload};
use crate::recorded::Recorded;

/// Each is a row of its own, with the function that makes it, whatever the form of the debug information.
#[test]
fn lambdas_have_the_names_of_their_functions() -> Result<()> {
    let forms: [&[&str]; 5] = [
        &["-gdwarf-4"],
        &["-gdwarf-5"],
        &["-gdwarf-4", "-gsplit-dwarf"],
        &["-gdwarf-5", "-gsplit-dwarf"],
        &["-gdwarf-5", "-flto"],
    ];
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler) {
            host::skip("lambdas_have_the_names_of_their_functions", &format!("{compiler} is not installed"))?;
            continue;
        }
        for flags in forms {
            // clang needs a linker of its own for that.
            if compiler == "clang++" && flags.contains(&"-flto") {
                continue;
            }
            let shop = Workshop::new()?;
            let program = shop.path("lambdas");
            let mut command = Command::new(compiler);
            command.args(["-std=c++17", "-O2", "-o"]).arg(&program).arg(workload("lambdas.cpp"));
            // Some compilers write split units to where they are called.
            run(command.args(flags).current_dir(shop.path("")))?;
            let recorded = Recorded::command([&program])?;
            let lambdas = weights(&recorded, |frame| frame.contains("::operator()"));
            let what = format!("{compiler} {flags:?}: {lambdas:#?}");
            let of = |function: &str| lambdas.keys().filter(|name| name.starts_with(function)).count();
            ensure!(of("app::first(") == 2 && of("app::second(") == 1 && lambdas.len() == 3, "{what}");
            let all = recorded.folded.weight() as f64;
            ensure!(lambdas.values().all(|&weight| weight as f64 > 0.1 * all), "{what}");
            let others = weights(&recorded, |frame| frame.contains("mixed<"));
            ensure!(others.keys().all(|name| name.contains("app::(anonymous namespace)::Mixer::mixed<")));
            ensure!(others.len() == 1, "{compiler} {flags:?}: {others:?}");
        }
    }
    Ok(())
}

/// What line tables alone leave out of the names of inlined functions is in the paths of their sources.
#[test]
fn rust_with_line_tables_alone_has_crates_and_modules() -> Result<()> {
    let shop = Workshop::new()?;
    let source = shop.path("my-app/src");
    fs::create_dir_all(source.join("geometry"))?;
    fs::copy(workload("modules.rs"), source.join("main.rs"))?;
    fs::copy(workload("geometry.rs"), source.join("geometry/mod.rs"))?;
    let program = shop.path("modules");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "-C", "debuginfo=line-tables-only", "--edition", "2021", "-o"]).arg(&program);
    // As Cargo calls it.
    run(rustc.arg(Path::new("src/main.rs")).current_dir(shop.path("my-app")))?;
    let recorded = Recorded::command([&program])?;
    let turned = weights(&recorded, |frame| frame.ends_with("turned_[i]"));
    ensure!(turned.keys().eq(&["my_app::geometry::turned_[i]"]), "{turned:?}");
    let core = weights(&recorded, |frame| frame.ends_with("rotate_left_[i]"));
    ensure!(core.keys().all(|name| name.starts_with("core::num::")), "{core:?}");
    let all = recorded.folded.weight() as f64;
    ensure!(turned.values().all(|&weight| weight as f64 > 0.8 * all), "{turned:?} of {all}");
    Ok(())
}

/// Names of the inlined frames that are wanted, with the weight of the stacks that have them.
fn weights(recorded: &Recorded, wanted: impl Fn(&str) -> bool) -> BTreeMap<&str, u64> {
    let mut weights = BTreeMap::new();
    for line in &recorded.folded.lines {
        for frame in line.frames.iter().filter(|frame| frame.ends_with("_[i]") && wanted(frame)) {
            *weights.entry(frame.as_str()).or_default() += line.weight;
        }
    }
    weights
}
