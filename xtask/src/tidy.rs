//! The rules of style that neither rustfmt nor clippy knows.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A file longer than this holds more than one concern.
const MAX_LINES: usize = 600;

/// Marks of unfinished work. Split, so that this file does not break its own rule.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("to", "do!("), concat!("db", "g!(")];

/// Absolute folders that mean something on one machine only, refused in the documents.
const LOCAL_FOLDERS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Folders with build results or foreign files.
const SKIPPED_FOLDERS: [&str; 3] = ["target", "demo", ".git"];

/// Checks every source and document of the workspace and lists all that is wrong.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut complaints = Vec::new();
    for file in files_below(workspace.root())? {
        let Some(kind) = Kind::of(&file) else { continue };
        let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let name = file.strip_prefix(workspace.root()).unwrap_or(&file).display();
        complaints
            .extend(complaints_about(kind, &text).into_iter().map(|complaint| format!("{name}{complaint}")));
    }
    if complaints.is_empty() {
        return Ok(());
    }
    complaints.sort();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    bail!("{} lines or files are untidy", complaints.len());
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rust,
    /// C, shell, settings, pages.
    OtherSource,
    Document,
    /// Written by a program or by others: only its end is looked at.
    Foreign,
}

impl Kind {
    fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?;
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match (name, extension) {
            (_, "rs") => Some(Self::Rust),
            (_, "c" | "css" | "h" | "html" | "js" | "mjs" | "sh" | "toml" | "yml" | "yaml")
            | ("run" | ".gitignore" | ".gitattributes", _) => Some(Self::OtherSource),
            (_, "md") => Some(Self::Document),
            ("Cargo.lock" | "LICENSE-MIT" | "LICENSE-APACHE", _) => Some(Self::Foreign),
            _ => None,
        }
    }
}

/// What is wrong in a file, each beginning with `:LINE: `.
fn complaints_about(kind: Kind, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        complaints.push(format!(":{}: does not end with one newline", text.lines().count()));
    }
    if kind == Kind::Foreign {
        return complaints;
    }
    if kind == Kind::Rust && !text.starts_with("//!") {
        complaints.push(":1: does not begin with a `//!` line that says what the file is for".to_owned());
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        complaints.push(format!(":{lines}: is longer than {MAX_LINES} lines"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if line.ends_with([' ', '\t', '\r']) {
            complaints.push(format!(":{number}: has trailing white space"));
        }
        let refused: &[&str] = if kind == Kind::Document { &LOCAL_FOLDERS } else { &UNFINISHED };
        if let Some(word) = refused.iter().find(|word| line.contains(**word)) {
            complaints.push(format!(":{number}: contains `{word}`"));
        }
    }
    complaints
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let listing = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in listing {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() && !SKIPPED_FOLDERS.iter().any(|skipped| entry.file_name() == *skipped) {
            files.extend(files_below(&entry.path())?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::{Kind, MAX_LINES, complaints_about};

    #[test]
    fn a_tidy_file_is_left_alone() {
        assert!(complaints_about(Kind::Rust, "//! About.\n\nfn main() {}\n").is_empty());
        assert!(complaints_about(Kind::Document, "# About\n\nRead `src/main.rs`.\n").is_empty());
    }

    #[test]
    fn each_rule_can_be_broken() {
        let long = format!("//! About.\n{}", "x\n".repeat(MAX_LINES));
        let unfinished = format!("//! About.\n// {}DO: more\n", "TO");
        let local = format!("see {}/notes\n", concat!("/wo", "rk"));
        for (kind, text, complaint) in [
            (Kind::Rust, "fn main() {}\n", ":1: does not begin"),
            (Kind::Rust, "//! About.", ":1: does not end"),
            (Kind::OtherSource, "a\n\n", ":2: does not end"),
            (Kind::Rust, "//! About.\nlet x; \n", ":2: has trailing"),
            (Kind::Rust, &long, ":601: is longer"),
            (Kind::Rust, &unfinished, ":2: contains"),
            (Kind::Document, &local, ":1: contains"),
        ] {
            let complaints = complaints_about(kind, text);
            assert_eq!(complaints.len(), 1, "{text:?}: {complaints:?}");
            assert!(complaints[0].starts_with(complaint), "{text:?}: {complaints:?}");
        }
    }
}
