//! C programs whose addresses a test knows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A program compiled from `tests/workloads`, at fixed addresses. Removed when dropped.
#[derive(Debug)]
pub struct CProgram {
    file: PathBuf,
    _folder: TempDir,
}

impl CProgram {
    /// Compiles `workloads/NAME.c`; `None` when there is no `cc` or no `nm`.
    pub fn compile(name: &str) -> Result<Option<Self>> {
        if !starts("cc") || !starts("nm") {
            return Ok(None);
        }
        let folder = tempfile::tempdir().context("making a folder")?;
        let file = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workloads/{name}.c"));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-no-pie", "-fno-pie", "-fno-omit-frame-pointer", "-o"]);
        cc.arg(&file).arg(&source);
        ensure!(cc.status().context("running cc")?.success(), "{cc:?} failed");
        Ok(Some(Self { file, _folder: folder }))
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The breakpoint event on the first instruction of a function, or at a label.
    pub fn breakpoint(&self, symbol: &str) -> Result<String> {
        let nm = Command::new("nm").arg(&self.file).output().context("running nm")?;
        let symbols = String::from_utf8(nm.stdout).context("reading what nm says")?;
        let address = symbols
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(_, found)| found.get(2..) == Some(symbol))
            .with_context(|| format!("{symbol} is not in the symbol table"))?
            .0;
        Ok(format!("mem:0x{address}:x"))
    }
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
