//! Paths of Rust functions from those of their sources. With line tables alone (`debug = "line-tables-only"`) an inlined function has its bare
//! name, and no entry says what it is in.

/// The name of a function with the crate and the modules that its file is, as far as the path of the file shows them; `None` where it shows
/// neither. What the file itself declares, types and modules between braces, is not known.
pub(super) fn in_module(file: &str, name: &str) -> Option<String> {
    let mut path = module(file)?;
    (!path.is_empty()).then(|| {
        path.push(name.into());
        path.join("::")
    })
}

/// The crate, where it can be known, and the modules down to that of a file in its `src`.
fn module(file: &str) -> Option<Vec<String>> {
    let mut parts = components(file);
    let root = parts.iter().rposition(|part| *part == "src")?;
    let mut modules = parts.split_off(root + 1);
    // What is before `src`.
    parts.pop();
    let stem = modules.pop()?.strip_suffix(".rs")?;
    modules.extend(Some(stem).filter(|stem| !matches!(*stem, "lib" | "main" | "mod")));
    if !modules.iter().all(|module| is_identifier(module)) {
        return None;
    }
    // Each program in `src/bin` is a crate.
    let krate = if modules.first() == Some(&"bin") && modules.len() > 1 {
        modules.drain(..2).next_back().map(|program| vec![program.to_owned()])
    } else {
        crate_of(&parts)
    };
    Some(krate.into_iter().flatten().chain(modules.into_iter().map(str::to_owned)).collect())
}

/// The crate of the package in this folder, with what it is a module of.
fn crate_of(folder: &[&str]) -> Option<Vec<String>> {
    let package = match *folder {
        // A module of `core` in a repository of its own.
        [.., "stdarch", "crates", "core_arch"] => {
            return Some(["core", "core_arch"].map(str::to_owned).into());
        }
        // Checked out by Cargo: its folder is called by the revision.
        [.., "checkouts", repository, _] => repository.rsplit_once('-')?.0,
        [.., package] => without_version(package),
        [] => return None,
    };
    let name = package.replace('-', "_");
    is_identifier(&name).then(|| vec![name])
}

/// `serde_json-1.0.1` is `serde_json`.
fn without_version(package: &str) -> &str {
    let is_version =
        |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains('.');
    let mut dashes = package.match_indices('-');
    dashes.find(|&(at, _)| is_version(&package[at + 1..])).map_or(package, |(at, _)| &package[..at])
}

/// The components of a path, where `..` leads back.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts
}

fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && characters.all(|character| character == '_' || character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";

    fn check(file: &str, name: &str, expected: Option<&str>) {
        assert_eq!(in_module(file, name).as_deref(), expected, "{file}");
    }

    #[test]
    fn crates_and_modules_come_from_the_path() {
        for (file, name, expected) in [
            ("serde_json-1.0.1/src/de.rs", "parse", "serde_json::de::parse"),
            ("aho-corasick-1.1.3/src/packed/mod.rs", "find", "aho_corasick::packed::find"),
            ("wasi-0.11.0+wasi-snapshot/src/lib.rs", "get", "wasi::get"),
            ("sha2-0.11.0-rc.2/src/sha256/x86.rs", "f<u8>", "sha2::sha256::x86::f<u8>"),
        ] {
            check(&format!("{REGISTRY}/{file}"), name, Some(expected));
        }
        for (file, name, expected) in [
            ("/rustc/59807616e/library/core/src/num/mod.rs", "wrapping_add", "core::num::wrapping_add"),
            (
                "/rustc/59807616e/library/core/src/../../stdarch/crates/core_arch/src/x86/sse2.rs",
                "_mm_loadu_si128",
                "core::core_arch::x86::sse2::_mm_loadu_si128",
            ),
            ("/rust/deps/hashbrown-0.15.2/src/raw/mod.rs", "find", "hashbrown::raw::find"),
            ("/home/me/app/src/geometry/mod.rs", "f", "app::geometry::f"),
            ("/home/me/src/app/src/main.rs", "{closure#0}", "app::{closure#0}"),
            ("/home/me/app/src/bin/tool.rs", "f", "tool::f"),
            ("/home/me/app/src/bin/tool/part.rs", "f", "tool::part::f"),
            ("/root/.cargo/git/checkouts/regex-ab12/1a2b3c4/src/dfa.rs", "f", "regex::dfa::f"),
            (
                "/root/.cargo/git/checkouts/regex-ab12/1a2b3c4/regex-lite/src/dfa.rs",
                "f",
                "regex_lite::dfa::f",
            ),
            ("src/geometry.rs", "f", "geometry::f"),
            ("/home/me/my app/src/geometry.rs", "f", "geometry::f"),
        ] {
            check(file, name, Some(expected));
        }
    }

    #[test]
    fn what_the_path_does_not_show_is_not_made_up() {
        for file in [
            "",
            "/",
            "src",
            "main.rs",
            "src/main.rs",
            "/home/me/app/build.rs",
            "/home/me/app/src/table.txt",
            "/home/me/src/app/target/debug/build/app-0123/out/table.rs",
            // A package without `src` in the registry, whose path has one.
            "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/old-1.0.0/lib.rs",
            "../../src/../..",
        ] {
            check(file, "f", None);
        }
    }
}
