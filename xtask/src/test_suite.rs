//! `test`: every test, and all the set-up that tests need.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    cargo::{WITHOUT_EBPF, cargo, host_triple},
    debian, pages,
    privilege::Privilege,
    process::{run as run_command, stdout_of},
    test_tally::Report,
    workloads,
    workspace::Workspace,
};

#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Install no package of Debian or npm; tests that need a missing one are skipped
    #[arg(long)]
    no_install: bool,
    /// Run only the tests whose name contains this
    filter: Option<String>,
}

/// Sets up, runs unit and end-to-end tests, and says which were skipped and why.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Report> {
    let privilege = Privilege::acquire();
    set_up(workspace, options, privilege)?;
    let suite = Suite { workspace, filter: options.filter.as_deref(), skips: fresh_skip_list(workspace)? };
    let mut report = Report::default();
    suite.unit_tests(&mut report)?;
    suite.end_to_end_tests(privilege, &mut report)?;
    report.apply_skip_list(&read_skip_list(&suite.skips)?);
    tell_skips(&report);
    Ok(report)
}

fn set_up(workspace: &Workspace, options: &Options, privilege: Privilege) -> Result<()> {
    let missing = debian::missing(debian::FOR_TESTS);
    if options.no_install && !missing.is_empty() {
        eprintln!("xtask: not installed, as asked, so that tests may be skipped: {}", missing.join(", "));
    } else {
        debian::install(&missing, privilege)?;
    }
    if !options.no_install {
        pages::install(workspace)?;
    }
    run_command(cargo(workspace).args(["build", "--release", "--package", "bpfprof"]))?;
    workloads::build_all(workspace)
}

struct Suite<'a> {
    workspace: &'a Workspace,
    filter: Option<&'a str>,
    skips: PathBuf,
}

impl Suite<'_> {
    fn unit_tests(&self, report: &mut Report) -> Result<()> {
        let mut command = self.cargo_test();
        command.args(WITHOUT_EBPF).args(["--exclude", workloads::PACKAGE]).args(self.filter);
        count(&mut command, report)
    }

    fn end_to_end_tests(&self, privilege: Privilege, report: &mut Report) -> Result<()> {
        let mut command = self.cargo_test();
        command.args(["--package", workloads::PACKAGE, "--tests"]).args(self.filter);
        match privilege {
            Privilege::Root => {}
            Privilege::Sudo => {
                let triple = host_triple()?.to_uppercase().replace('-', "_");
                command.env(format!("CARGO_TARGET_{triple}_RUNNER"), "sudo -E");
            }
            Privilege::None(reason) => return skip_all(command, reason, report),
        }
        // One at a time: each samples the machine that the others would load.
        count(command.args(["--", "--test-threads=1"]), report)
    }

    fn cargo_test(&self) -> Command {
        let mut command = cargo(self.workspace);
        command.args(["test", "--no-fail-fast"]);
        command.env("BPFPROF_BIN", self.workspace.bpfprof());
        command.env("BPFPROF_WORKLOADS", self.workspace.workloads());
        command.env("BPFPROF_WORKLOADS_NOFP", self.workspace.workloads_without_frame_pointers());
        command.env("BPFPROF_PAGES", pages::folder(self.workspace));
        command.env("BPFPROF_SKIPS", &self.skips);
        command
    }
}

/// Runs `cargo test`, shows its output and counts.
fn count(command: &mut Command, report: &mut Report) -> Result<()> {
    let failed_before = report.failed();
    let mut child = command.stdout(Stdio::piped()).spawn().context("`cargo test` cannot be started")?;
    let Some(output) = child.stdout.take() else {
        bail!("the output of `cargo test` cannot be read");
    };
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).context("the output of `cargo test` cannot be read")? > 0 {
        std::io::stdout().write_all(&line).context("stdout cannot be written")?;
        report.count_line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let status = child.wait().context("`cargo test` cannot be waited for")?;
    if !status.success() && report.failed() == failed_before {
        eprintln!("xtask: `cargo test` failed without a failed test ({status}): counted as one failure");
        report.fail();
    }
    Ok(())
}

/// Books every end-to-end test as skipped, and one failure: what was asked for was not tested.
fn skip_all(mut command: Command, reason: &str, report: &mut Report) -> Result<()> {
    let list = stdout_of(command.args(["--", "--list"]))?;
    let tests: Vec<_> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    eprintln!(
        "xtask: {} end-to-end tests need root and are skipped, which counts as one failure: {reason}",
        tests.len()
    );
    for test in tests {
        report.skip(test, &format!("needs root: {reason}"));
    }
    report.fail();
    Ok(())
}

fn fresh_skip_list(workspace: &Workspace) -> Result<PathBuf> {
    let path = workspace.target().join("test-skips.tsv");
    fs::write(&path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

fn read_skip_list(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

fn tell_skips(report: &Report) {
    for (name, reason) in report.skipped() {
        println!("skipped {name}: {reason}");
    }
}
