//! The programs that open outputs: scripts for node, which drive Chromium.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, host};

/// Node, Chromium and the packages of npm.
pub(crate) struct Readers {
    folder: PathBuf,
}

impl Readers {
    /// Finds them; books `test` as skipped where one is missing.
    pub(crate) fn find(test: &str) -> Result<Option<Self>> {
        let folder =
            env::var_os("BPFPROF_PAGES").context("BPFPROF_PAGES is not set: run `cargo xtask test`")?;
        let folder = PathBuf::from(folder);
        let missing = [
            (folder.join("node_modules/playwright-core"), "the packages of tests/pages are not installed"),
            (PathBuf::from("/usr/bin/chromium"), "chromium is not installed"),
        ];
        for (path, reason) in missing {
            if !path.exists() {
                host::skip(test, reason)?;
                return Ok(None);
            }
        }
        Ok(Some(Self { folder }))
    }

    /// Runs a script on a file, with more arguments; the script judges what it sees. Pictures stay in the folder of the packages.
    pub(crate) fn judge(&self, script: &str, file: &Path, more: &[&str]) -> Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages").join(script);
        let mut node = Command::new("node");
        node.arg(&script).args([file, &self.folder]).args(more).env("BPFPROF_PAGES", &self.folder);
        let output = node.output().context("node cannot be started")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} refuses {}:\n{told}", script.display(), file.display());
        Ok(())
    }
}

/// Two threads that burn CPU time in `spin_alpha` and `spin_beta`, written to this file: the clock, page faults, and an event that never
/// happens.
pub(crate) fn record(file: &Path) -> Result<()> {
    let counters = ["--counters", "page-faults,alignment-faults"];
    let run = Bpfprof::clock(counters.map(OsStr::new)).output(file);
    run.workload("spin", &["alpha,beta", "0.6", "--threads", "2"]).succeed()?;
    Ok(())
}
