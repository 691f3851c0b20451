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

/// What assemblers and linkers fill up with.
const PADDING: [&str; 5] = ["nop", "nopl", "nopw", "xchg", "int3"];

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

    /// The address that the first call in a function leads to.
    pub fn called_by(&self, function: &str) -> Result<u64> {
        let code = self.seen_by("objdump", &["-d", &format!("--disassemble={function}")])?;
        let calls = code.lines().filter_map(|line| line.split('\t').nth(2)?.split_once(' '));
        let mut targets = calls.filter_map(|(mnemonic, operand)| {
            let target = operand.trim().split(' ').next().unwrap_or_default();
            ["call", "bl"].contains(&mnemonic).then(|| u64::from_str_radix(target, 16).ok()).flatten()
        });
        targets.next().with_context(|| format!("{function} calls nothing"))
    }

    /// The address of a section; `None` when there is none of this name.
    pub fn section(&self, name: &str) -> Result<Option<u64>> {
        let sections = self.seen_by("objdump", &["-h"])?;
        let mut sections = sections.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let address = sections.find(|words| words.get(1) == Some(&name)).map(|words| words[3]);
        Ok(address.map(|address| u64::from_str_radix(address, 16)).transpose()?)
    }

    /// Addresses and mnemonics of the instructions from this address on, for so many bytes, without what only fills up.
    pub fn instructions(&self, address: u64, len: u64) -> Result<Vec<(u64, String)>> {
        let (from, to) = (format!("--start-address={address}"), format!("--stop-address={}", address + len));
        let code = self.seen_by("objdump", &["-d", &from, &to])?;
        let instructions = code.lines().filter_map(|line| {
            let (address, rest) = line.trim_start().split_once(":\t")?;
            let mnemonic = rest.split('\t').nth(1)?.split(' ').next()?;
            Some((u64::from_str_radix(address, 16).ok()?, mnemonic.to_owned()))
        });
        Ok(instructions.filter(|(_, mnemonic)| !PADDING.contains(&mnemonic.as_str())).collect())
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

/// Whether this program is installed and starts.
#[must_use]
pub fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
