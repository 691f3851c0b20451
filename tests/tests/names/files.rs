//! Files that are not at their path any more, or not the ones they were.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};

use crate::program::Workshop;
use crate::recorded::Recorded;

#[test]
fn a_program_that_deletes_its_own_file() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_deleted", &[])?;
    Recorded::script(&format!("{} 0.5 delete", burn.display()))?.spent_in("burns_deleted", 0.9)?;
    ensure!(!burn.exists());
    Ok(())
}

#[test]
fn a_program_that_replaces_its_own_file() -> Result<()> {
    let shop = Workshop::new()?;
    for id in ["--build-id=sha1", "--build-id=none"] {
        let flag = format!("-Wl,{id}");
        let burn = shop.build("burn", "burns_replaced", &[&flag])?;
        let trap = shop.build("trap", "never_ran", &[&flag])?;
        let recorded = Recorded::script(&format!("{} 0.5 replace {}", burn.display(), trap.display()))?;
        recorded.spent_in("burns_replaced", 0.9)?;
        recorded.never_in("never_ran")?;
    }
    Ok(())
}

#[test]
fn a_program_built_anew_between_two_runs() -> Result<()> {
    let shop = Workshop::new()?;
    for id in ["--build-id=sha1", "--build-id=none"] {
        let flag = format!("-Wl,{id}");
        let first = shop.build("first", "burns_at_first", &[&flag])?;
        let second = shop.build("second", "burns_afterwards", &[&flag])?;
        let program = shop.path("program");
        let script = format!(
            "cp {0} {2}; {2} 0.4; rm {2}; cp {1} {2}; {2} 0.4",
            first.display(),
            second.display(),
            program.display()
        );
        let recorded = Recorded::script(&script)?;
        recorded.spent_in("burns_at_first", 0.35)?;
        recorded.spent_in("burns_afterwards", 0.35)?;
    }
    Ok(())
}

#[test]
fn a_program_written_anew_in_place_takes_no_wrong_names() -> Result<()> {
    let shop = Workshop::new()?;
    let flags = ["-Wl,--build-id=none"];
    let first = shop.build("first", "burns_at_first", &flags)?;
    let second = shop.build("second", "burns_afterwards", &flags)?;
    let program = shop.path("program");
    // `cat` keeps the inode.
    let script = format!(
        "cp {0} {2}; {2} 0.4; cat {1} > {2}; {2} 0.2",
        first.display(),
        second.display(),
        program.display()
    );
    let recorded = Recorded::script(&script)?;
    recorded.never_in("burns_at_first")?;
    let afterwards = recorded.folded.weight_of("burns_afterwards") as f64 / 1e9;
    ensure!((0.15..0.25).contains(&afterwards), "{afterwards} s of 0.2 s:\n{}", recorded.stderr);
    ensure!(recorded.stderr.contains("was overwritten"), "{}", recorded.stderr);
    Ok(())
}

#[test]
fn plugins_loaded_in_turn_at_one_address() -> Result<()> {
    let shop = Workshop::new()?;
    let host = shop.build("host", "burns_host", &[])?;
    let (one, two) = (shop.build_plugin("one.so", "burns_one")?, shop.build_plugin("two.so", "burns_two")?);
    let [host, one, two] = [host, one, two].map(|path| path.display().to_string());
    // A turn is longer than what a drain of the tables takes together.
    let recorded = Recorded::script(&format!("{host} 0.5 turns {one} {two} {one} {two}"))?;
    recorded.spent_in("burns_one", 0.3)?;
    recorded.spent_in("burns_two", 0.3)
}

#[test]
fn a_program_that_runs_from_memory() -> Result<()> {
    let shop = Workshop::new()?;
    // Without a build id, the copy is another object than the file.
    let burn = shop.build("burn", "burns_in_memory", &["-Wl,--build-id=none"])?;
    let recorded = Recorded::script(&format!("{} 0.5 memfd", burn.display()))?;
    recorded.spent_in("burns_in_memory", 0.9)?;
    ensure!(recorded.report.function("burns_in_memory")?.object == "memfd:copy");
    Ok(())
}

#[test]
fn a_program_behind_a_link_that_leads_elsewhere_later() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_behind_a_link", &[])?;
    let trap = shop.build("trap", "never_ran", &[])?;
    let link = shop.path("link");
    symlink(&burn, &link)?;
    let script = format!("{0} 0.4; ln -sf {1} {0}", link.display(), trap.display());
    let recorded = Recorded::script(&script)?;
    recorded.spent_in("burns_behind_a_link", 0.9)?;
    recorded.never_in("never_ran")?;
    ensure!(fs::read_link(&link)? == trap);
    Ok(())
}
