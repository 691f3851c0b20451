//! Objects of this machine that have call-frame information.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Objects every machine with this test has: the test itself, the C library and the loader that it runs with.
pub(crate) fn always_there() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").expect("the own mappings");
    let mapped = |name: &str| {
        let file = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
        let mut named =
            file.filter(|file| file.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)));
        named.next().unwrap_or_else(|| panic!("{name} is not mapped"))
    };
    vec![mapped("libc.so"), mapped("ld-linux"), env::current_exe().expect("the own program")]
}

/// Objects of the compiler and of C++, as far as they are there. rustc's own libraries were reordered by a binary optimizer.
pub(crate) fn of_tool_chains() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    if let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() {
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
        files.extend(shared_objects(&sysroot.join("lib"), &["librustc_driver", "libLLVM"]));
        let target = format!("lib/rustlib/{}-unknown-linux-gnu/lib", env::consts::ARCH);
        files.extend(shared_objects(&sysroot.join(target), &["libstd"]));
    }
    if let Ok(output) = Command::new("cc").arg("-print-file-name=libstdc++.so.6").output() {
        let file = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
        files.extend(file.canonicalize());
    }
    files
}

/// Real objects in a folder, not the linker scripts that also end in `.so`.
fn shared_objects(folder: &Path, beginnings: &[&str]) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = files.filter(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        beginnings.iter().any(|beginning| name.starts_with(beginning)) && name.contains(".so")
    });
    wanted.filter(|file| fs::metadata(file).is_ok_and(|data| data.len() > 65_536)).collect()
}
