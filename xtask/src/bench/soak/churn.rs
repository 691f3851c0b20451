//! Work whose programs, processes and mappings come and go all the time.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use super::super::{Bench, project::Project, running::Running};

/// Loops that run side by side until this is stopped or dropped.
pub(super) struct Churn {
    /// The loops go on while this file is there.
    flag: PathBuf,
    loops: Vec<Running>,
}

impl Churn {
    /// Builds what the loops run, and starts them.
    pub(super) fn start(bench: &Bench<'_>) -> Result<Self> {
        let directory = bench.folder.join("churn");
        fs::create_dir_all(&directory).context("the directory of the churn cannot be created")?;
        let flag = directory.join("running");
        fs::write(&flag, "").context("the directory of the churn cannot be written to")?;
        let mut churn = Self { flag, loops: Vec::new() };

        let deep = bench.c_workload("deep", &["-fomit-frame-pointer"])?;
        churn.repeat(r#""$1" 20 1; "$1" 50 5; "$1" 20 20"#, |shell| {
            shell.arg(&deep);
        })?;
        churn.repeat(r#"cp "$1" "$2"; "$2" 20 20; rm -f "$2""#, |shell| {
            shell.arg(&deep).arg(directory.join("copy"));
        })?;
        let forks = bench.workspace.root().join("xtask/src/bench/soak/forks.c");
        let forks = bench.compile(&forks, "forks", &["-fomit-frame-pointer"])?;
        churn.repeat(r#""$1" 100 5"#, |shell| {
            shell.arg(&forks);
        })?;
        let plugins = bench.c_workload("plugins", &["-fomit-frame-pointer"])?;
        let [one, two] = ["plugin_one", "plugin_two"].map(|name| plugin(bench, name));
        let (one, two) = (one?, two?);
        churn.repeat(r#""$1" 2000 "$2" "$3""#, |shell| {
            shell.args([&plugins, &one, &two]);
        })?;
        let source = bench.c_source("deep");
        churn.repeat(r#"cc -O2 -c -o "$2" "$1""#, |shell| {
            shell.arg(&source).arg(directory.join("compiled.o"));
        })?;
        let project = Project::fetch(bench)?;
        churn.repeat(r#"touch src/main.rs; "$@""#, |shell| project.build_under(shell))?;
        Ok(churn)
    }

    /// Lets the loops come to their end.
    pub(super) fn stop(mut self) -> Result<()> {
        fs::remove_file(&self.flag).context("the churn cannot be stopped")?;
        self.loops.iter_mut().try_for_each(Running::wait)
    }

    /// Starts a loop of this body. Arguments are numbered from 1; what a program says and how it ends does not matter.
    fn repeat(&mut self, body: &str, append: impl FnOnce(&mut Command)) -> Result<()> {
        let mut shell = Command::new("sh");
        let script = format!(r#"while [ -e "$0" ]; do {body}; done; exit 0"#);
        shell.args(["-c", &script]).arg(&self.flag);
        append(&mut shell);
        self.loops.push(Running::start(shell.stderr(Stdio::null()))?);
        Ok(())
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        // Gone already after a stop.
        let _ = fs::remove_file(&self.flag);
    }
}

/// A library with a function of this name.
fn plugin(bench: &Bench<'_>, name: &str) -> Result<PathBuf> {
    let define = format!("-DNAME={name}");
    let flags = ["-fomit-frame-pointer", "-shared", "-fPIC", &define];
    bench.compile(&bench.c_source("plugin"), &format!("{name}.so"), &flags)
}
