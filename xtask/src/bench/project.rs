//! The project whose build is profiled: a small program with the dependencies that most have.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::Bench;
use crate::{
    cargo::{forget_xtask, program},
    process::run,
};

const MANIFEST: &str = r#"[package]
name = "profiled"
version = "0.1.0"
edition = "2021"

[dependencies]
regex = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"

[workspace]
"#;

const PROGRAM: &str = r##"#[derive(serde::Deserialize, serde::Serialize, Debug)]
struct Person { name: String, age: u32 }

fn main() {
    let person: Person = serde_json::from_str(r#"{"name":"Ada","age":36}"#).unwrap();
    println!("{person:?} {}", regex::Regex::new("A.a").unwrap().is_match(&person.name));
}
"##;

/// The project, with its dependencies on this machine.
pub(super) struct Project {
    folder: PathBuf,
}

impl Project {
    /// Writes it and fetches what it depends on.
    pub(super) fn fetch(bench: &Bench<'_>) -> Result<Self> {
        let folder = bench.folder.join("project");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text)
                .with_context(|| format!("{name} of the project cannot be written"))
        };
        fs::create_dir_all(folder.join("src")).context("the folder of the project cannot be created")?;
        write("Cargo.toml", MANIFEST)?;
        write("src/main.rs", PROGRAM)?;
        let project = Self { folder };
        run(project.cargo().args(["fetch", "--quiet"]))?;
        Ok(project)
    }

    /// Removes what was built.
    pub(super) fn clean(&self) -> Result<()> {
        run(self.cargo().args(["clean", "--quiet"]))
    }

    /// Lets a command, whose last arguments are those of the program it runs, run the build.
    pub(super) fn build_under(&self, command: &mut Command) {
        command.arg(program()).args(["build", "--quiet", "--offline"]);
        self.prepare(command);
    }

    fn cargo(&self) -> Command {
        let mut command = Command::new(program());
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        forget_xtask(command);
    }
}
