//! C programs whose addresses a test knows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A program compiled from `tests/workloads`. Removed when dropped.
#[derive(Debug)]
pub struct CProgram {
    file: PathBuf,
    _folder: TempDir,
}

/// Flags for code with frame pointers, at fixed addresses.
const WITH_FRAME_POINTERS: &[&str] = &["-O1", "-no-pie", "-fno-pie", "-fno-omit-frame-pointer"];

impl CProgram {
    /// Compiles `workloads/NAME.c` with frame pointers and at fixed addresses; `None` when there is no `cc` or no `nm`.
    pub fn compile(name: &str) -> Result<Option<Self>> {
        Self::compile_with(name, WITH_FRAME_POINTERS)
    }

    /// Compiles `workloads/NAME.c` with these flags; `None` when there is no `cc` or no `nm`.
    pub fn compile_with(name: &str, flags: &[&str]) -> Result<Option<Self>> {
        Self::build(name, name, flags)
    }

    /// Compiles `workloads/plugin.c` with this entry, to `ENTRY.so`; `None` when there is no `cc` or no `nm`.
    ///
    /// It has so many functions more, with two rows in its unwind table for each.
    pub fn compile_plugin(entry: &str, functions: u32) -> Result<Option<Self>> {
        let mut flags = vec!["-O2", "-fomit-frame-pointer", "-shared", "-fPIC"];
        let (name, functions) = (format!("-DNAME={entry}"), format!("-DFUNCTIONS={functions}"));
        flags.extend([name.as_str(), &functions]);
        Self::build("plugin", &format!("{entry}.so"), &flags)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The breakpoint event on the first instruction of a function, or at a label. The program must lie at fixed addresses.
    pub fn breakpoint(&self, symbol: &str) -> Result<String> {
        let symbols = self.seen_by("nm", &[])?;
        let address = symbols
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(_, found)| found.get(2..) == Some(symbol))
            .with_context(|| format!("{symbol} is not in the symbol table"))?
            .0;
        Ok(format!("mem:0x{address}:x"))
    }

    /// The breakpoint event on a byte of the entry that leads to a function of a library. The program must lie at fixed addresses.
    pub fn breakpoint_in_linkage(&self, function: &str, byte: u64) -> Result<String> {
        let code = self.seen_by("objdump", &["-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"])?;
        let label = format!(" <{function}@plt>:");
        let address = code.lines().find_map(|line| line.strip_suffix(&label));
        let address = address.with_context(|| format!("{function} has no entry in the linkage table"))?;
        Ok(format!("mem:{:#x}:x", u64::from_str_radix(address, 16)? + byte))
    }

    /// Takes all symbols away.
    pub fn strip(&self) -> Result<()> {
        self.seen_by("strip", &[]).map(drop)
    }

    /// Rewrites the program as `objcopy` does with these options.
    pub fn rewrite(&self, options: &[&str]) -> Result<()> {
        self.seen_by("objcopy", options).map(drop)
    }

    fn build(source: &str, file_name: &str, flags: &[&str]) -> Result<Option<Self>> {
        if !starts("cc") || !starts("nm") {
            return Ok(None);
        }
        let folder = tempfile::tempdir().context("making a folder")?;
        let file = folder.path().join(file_name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workloads/{source}.c"));
        let mut cc = Command::new("cc");
        cc.args(["-g", "-pthread"]).args(flags).arg("-o").arg(&file).arg(&source).arg("-ldl");
        ensure!(cc.status().context("running cc")?.success(), "{cc:?} failed");
        Ok(Some(Self { file, _folder: folder }))
    }

    fn seen_by(&self, tool: &str, options: &[&str]) -> Result<String> {
        let mut command = Command::new(tool);
        let output = command.args(options).arg(&self.file).output();
        let output = output.with_context(|| format!("running {tool}"))?;
        ensure!(output.status.success(), "{command:?} failed");
        String::from_utf8(output.stdout).with_context(|| format!("reading what {tool} says"))
    }
}

/// Flags for `cc` that link by the lld of the Rust tool chain, as rustc has it do; `None` where that has none.
pub fn lld_of_rust() -> Result<Option<[String; 2]>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("running rustc")?;
    let sysroot = String::from_utf8(output.stdout).context("reading what rustc says")?;
    let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
    let folders = std::fs::read_dir(&rustlib).into_iter().flatten().flatten();
    let linker =
        folders.map(|folder| folder.path().join("bin/gcc-ld")).find(|bin| bin.join("ld.lld").exists());
    Ok(linker.map(|folder| [format!("-B{}", folder.display()), "-fuse-ld=lld".into()]))
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
