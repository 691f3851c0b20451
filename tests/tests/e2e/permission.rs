//! Without privileges: what is missing, and the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, host};

const TEST: &str = "permission::a_plain_user_is_told_what_is_missing";

#[test]
fn a_plain_user_is_told_what_is_missing() -> Result<()> {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return host::skip(TEST, "`setpriv` (package util-linux) is not installed");
    }
    // The build folder may be closed to others.
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let copy = folder.path().join("bpfprof");
    fs::copy(host::bpfprof(), &copy).context("copying bpfprof")?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).args(["--", "true"]);
    let run = Bpfprof::through(command).run()?;
    run.expect_refusal(1, &[])?;
    let remedies = ["CAP_BPF", "CAP_PERFMON", "sudo"];
    ensure!(remedies.iter().any(|remedy| run.stderr.contains(remedy)), "no remedy in: {}", run.stderr);
    Ok(())
}
