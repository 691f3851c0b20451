//! Functions with several names, copies of functions, and names within a time.

use anyhow::{Result, ensure};

use crate::program::{Workshop, run, workload};
use crate::recorded::Recorded;

#[test]
fn names_that_take_too_long_are_those_of_symbol_tables() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_in_time", &[])?;
    let recorded = Recorded::of(|run| run.args(["--symbol-time", "1ns", "--"]).args([&burn]).args(["0.3"]))?;
    recorded.spent_in("burns_in_time", 0.9)?;
    // It is inlined, which debug information alone tells.
    recorded.never_in("takes_turns")?;
    let notes = &recorded.report.header.notes;
    ensure!(notes.iter().any(|note| note.contains("--symbol-time")), "{notes:?}");
    Ok(())
}

#[test]
fn a_function_has_one_name_and_the_others_beside_it() -> Result<()> {
    let shop = Workshop::new()?;
    let program = shop.path("aliases");
    // Without debug information, the symbol table has all names.
    for debug in ["-g0", "-g"] {
        let mut gcc = std::process::Command::new("gcc");
        let flags = ["-O2", debug, "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all", "-o"];
        run(gcc.args(flags).arg(&program).arg(workload("aliases.c")))?;
        for _ in 0..2 {
            let recorded = Recorded::command([&program])?;
            for (name, others) in [
                ("public_name", &["__GI_public_name", "__public_name"][..]),
                ("folded_one", &["folded_two"]),
                ("copied", &["copied.constprop.0"]),
            ] {
                recorded.spent_in(name, 0.2)?;
                let function = recorded.report.function(name)?;
                ensure!(function.also == others, "{debug}: {function:?}");
                for other in others {
                    recorded.never_in(other)?;
                }
            }
        }
    }
    Ok(())
}
