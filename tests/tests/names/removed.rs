//! Debug information of code that the linker removed.

use anyhow::{Result, ensure};

use crate::program::{Workshop, build_id, workload};
use crate::recorded::Recorded;

/// Its addresses are 0 or 1 then, and it seems to lie over all live code: over what has no debug information of its own, as `_start`.
#[test]
fn it_names_no_live_code() -> Result<()> {
    let shop = Workshop::new()?;
    let removed = workload("removed.c");
    for linker in ["-fuse-ld=bfd", "-fuse-ld=gold"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let removed = removed.to_string_lossy();
            let flags = ["-ffunction-sections", "-Wl,--gc-sections", linker, version, &removed];
            let burn = shop.build("burn", "burns_beside_removed", &flags)?;
            let recorded = Recorded::command([burn.as_os_str(), "0.3".as_ref()])?;
            for name in ["removed_by_the_linker", "removed_as_well"] {
                recorded.never_in(name)?;
            }
            recorded.spent_in("burns_beside_removed", 0.9)?;
            recorded.spent_in("_start", 0.9)?;
            let start = recorded.report.function("_start")?;
            ensure!(start.hottest_line.is_none(), "{linker} {version}: {start:?}");
        }
    }
    Ok(())
}

/// A separate debug file has no code, but tells where it lies.
#[test]
fn nor_does_it_from_a_separate_file() -> Result<()> {
    let shop = Workshop::new()?;
    let removed = workload("removed.c");
    let removed = removed.to_string_lossy();
    let flags = ["-ffunction-sections", "-Wl,--gc-sections", "-fuse-ld=bfd", "-gdwarf-5", &removed];
    let burn = shop.build("burn", "burns_beside_removed", &flags)?;
    let id = build_id(&burn)?;
    let (first, rest) = id.split_at(2);
    shop.split_debug(&burn, &format!("debug/.build-id/{first}/{rest}.debug"))?;
    let (stripped, folder) = (shop.strip(&burn, "stripped")?, shop.path("debug"));
    let recorded = Recorded::of(|run| {
        run.args(["--debug-dir".as_ref(), folder.as_os_str(), "--".as_ref()])
            .args([stripped.as_os_str(), "0.3".as_ref()])
    })?;
    recorded.never_in("removed_by_the_linker")?;
    recorded.never_in("removed_as_well")?;
    recorded.spent_in("_start", 0.9)
}
