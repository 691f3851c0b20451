//! The folder below which the kernel's files are looked for: `/`, or a made-up one in tests.

use std::path::{Path, PathBuf};

/// The root of this machine.
pub(super) const SYSTEM_ROOT: &str = "/";

/// The absolute path, taken below `root`.
pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Writes a file of a made-up root, with its folders.
#[cfg(test)]
pub(super) fn write(root: &Path, path: &str, text: &str) {
    let path = below(root, path);
    let folder = path.parent().unwrap_or(root);
    std::fs::create_dir_all(folder).expect("a folder of the made-up root");
    std::fs::write(path, text).expect("a file of the made-up root");
}
