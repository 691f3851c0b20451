//! Programs in other mount and pid namespaces, and below other roots.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use bpfprof_tests::host;

use crate::program::{Workshop, build_id};
use crate::recorded::Recorded;

#[test]
fn a_path_in_another_mount_namespace_is_not_looked_up_in_ours() -> Result<()> {
    let shop = Workshop::new()?;
    for id in ["--build-id=sha1", "--build-id=none"] {
        let flag = format!("-Wl,{id}");
        let burn = shop.build("burn", "burns_inside", &[&flag])?;
        // Outside, the same path is another program.
        let path = shop.build("program", "burns_outside", &[&flag])?;
        let script =
            format!("unshare -m sh -c 'mount --bind {0} {1} && {1} 0.5'", burn.display(), path.display());
        let recorded = Recorded::script(&script)?;
        recorded.spent_in("burns_inside", 0.8)?;
        recorded.never_in("burns_outside")?;
    }
    Ok(())
}

#[test]
fn processes_of_a_mount_namespace_that_is_gone() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_inside", &["-Wl,--build-id=none"])?;
    let path = shop.build("program", "burns_outside", &["-Wl,--build-id=none"])?;
    let script = format!(
        "unshare -m sh -c 'mount -t tmpfs none /mnt && cp {0} /mnt/b && mount --bind /mnt/b {1} && for i in 1 2 3; do {1} 0.3; done'",
        burn.display(),
        path.display()
    );
    let recorded = Recorded::script(&script)?;
    recorded.spent_in("burns_inside", 0.7)?;
    recorded.never_in("burns_outside")
}

#[test]
fn a_path_below_another_root() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_below_a_root", &["-static", "-DSTATIC"])?;
    let outside = shop.build("program", "burns_outside", &["-static", "-DSTATIC"])?;
    let root = shop.path("root");
    let inside = root.join(outside.strip_prefix("/")?);
    fs::create_dir_all(inside.parent().context("no folder")?)?;
    fs::copy(&burn, &inside)?;
    let recorded = Recorded::script(&format!("chroot {} {} 0.5", root.display(), outside.display()))?;
    recorded.spent_in("burns_below_a_root", 0.8)?;
    recorded.never_in("burns_outside")
}

#[test]
fn debug_files_below_another_root() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_below_a_root", &["-static", "-DSTATIC"])?;
    let id = build_id(&burn)?;
    let (first, rest) = id.split_at(2);
    shop.split_debug(&burn, &format!("root/usr/lib/debug/.build-id/{first}/{rest}.debug"))?;
    shop.strip(&burn, "root/program")?;
    let recorded = Recorded::script(&format!("chroot {} /program 0.5", shop.path("root").display()))?;
    recorded.spent_in("burns_below_a_root", 0.8)
}

#[test]
fn a_program_in_a_pid_namespace() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_in_a_pid_namespace", &[])?;
    let recorded = Recorded::script(&format!("unshare -pf --mount-proc {} 0.5", burn.display()))?;
    recorded.spent_in("burns_in_a_pid_namespace", 0.8)
}

#[test]
fn from_inside_a_pid_namespace_ids_are_those_seen_there() -> Result<()> {
    let shop = Workshop::new()?;
    let (burn, stranger) =
        (shop.build("burn", "burns_inside", &[])?, shop.build("stranger", "burns_outside", &[])?);
    let mut outside = Command::new(&stranger).arg("600").spawn()?;
    let path = |name: &str| shop.path(&format!("{name}.folded"));
    // The id of the first process started there is 2, which outside is a kernel thread. The namespace ends with its
    // shell, and with it what still runs.
    let script = format!(
        "{burn} 600 & test $! = 2 && {bpfprof} -q -d 500ms --pid 2 -o {attached} && \
         {bpfprof} -q -o {launched} -- sh -c '{burn} 0.3 & wait' && {bpfprof} -q -d 500ms --all -o {all}",
        burn = burn.display(),
        bpfprof = host::bpfprof().display(),
        attached = path("attached").display(),
        launched = path("launched").display(),
        all = path("all").display(),
    );
    let status = Command::new("unshare").args(["-pf", "--mount-proc", "sh", "-c", &script]).status()?;
    outside.kill()?;
    outside.wait()?;
    anyhow::ensure!(status.success(), "the script failed: {status}");
    for (run, target) in [("attached", "--pid"), ("launched", "a command"), ("all", "--all")] {
        let stacks = fs::read_to_string(path(run))?;
        anyhow::ensure!(stacks.contains("burns_inside"), "{target} missed the process: {stacks}");
        anyhow::ensure!(!stacks.contains("burns_outside"), "{target} sampled a stranger: {stacks}");
    }
    Ok(())
}
