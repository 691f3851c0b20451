//! A cgroup and those below it as the target.

use anyhow::Result;
use bpfprof_tests::cgroup::Cgroup;
use bpfprof_tests::{Bpfprof, Target, host};

#[test]
fn a_cgroup_with_its_children_and_nothing_else() -> Result<()> {
    let Some(group) = Cgroup::new("bpfprof-test")? else {
        return host::skip(
            "cgroups::a_cgroup_with_its_children_and_nothing_else",
            "cgroup version 2 is not mounted",
        );
    };
    let below = group.child("below")?;
    // Declared after the cgroups, so that they end before these are removed.
    let _inside = Target::start(group.workload("spin", &["alpha", "60"]), "spin")?;
    let _below = Target::start(below.workload("spin", &["beta", "60"]), "spin")?;
    let _outside = Target::workload("spin", &["gamma", "60"])?;

    let run = Bpfprof::clock(["-d", "1s", "--cgroup"]).args([group.folder()]).succeed()?;
    let folded = run.folded()?;
    assert!(folded.weight_of("spin_alpha") > 0 && folded.weight_of("spin_beta") > 0, "{folded:?}");
    assert_eq!(folded.weight_of("spin_gamma"), 0);
    assert_eq!(folded.weight_of_comm("spin"), folded.weight());

    let run = Bpfprof::clock(["-d", "1s", "--cgroup"]).args([below.folder()]).succeed()?;
    let folded = run.folded()?;
    assert!(folded.weight_of("spin_beta") > 0);
    assert_eq!(folded.weight_of("spin_alpha"), 0);
    Ok(())
}
