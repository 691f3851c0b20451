//! Code that a process makes while it runs.

use anyhow::{Result, ensure};
use bpfprof_tests::host;

use crate::program::{is_installed, workload};
use crate::recorded::Recorded;

#[test]
fn node_names_its_functions_in_a_perf_map() -> Result<()> {
    if !is_installed("node") {
        return host::skip("node_names_its_functions_in_a_perf_map", "node is not installed");
    }
    let script = workload("burn.js");
    // A /tmp of its own, which is gone when its last process is, and the map before it. The script is opened before: it may lie below /tmp.
    for namespaces in ["-m", "-mpf"] {
        let command = format!(
            "unshare {namespaces} sh -c 'exec <{} && mount -t tmpfs none /tmp && cd /tmp && node --perf-basic-prof - 1; rm /tmp/perf-*.map'",
            script.display()
        );
        let recorded = Recorded::script(&command)?;
        let named = recorded
            .folded
            .weight_where(|line| line.frames.iter().any(|frame| frame.contains("burnsInScript")));
        // The first moments are node's own start.
        ensure!(named * 2 > recorded.folded.weight(), "{named}:\n{}", recorded.stderr);
    }
    Ok(())
}

#[test]
fn without_a_map_the_remedy_is_said() -> Result<()> {
    if !is_installed("node") {
        return host::skip("without_a_map_the_remedy_is_said", "node is not installed");
    }
    let recorded = Recorded::command(["node".as_ref(), workload("burn.js").as_os_str(), "0.5".as_ref()])?;
    ensure!(recorded.stderr.contains("--perf-basic-prof"), "{}", recorded.stderr);
    Ok(())
}
