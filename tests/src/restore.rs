//! Settings of the kernel that a test changes and that must come back, whatever happens.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file of `/proc/sys` or `/sys` whose content is put back when this is dropped, also by a panic.
#[derive(Debug)]
pub struct Setting {
    file: PathBuf,
    before: String,
}

impl Setting {
    /// Remembers the content.
    pub fn of(file: impl AsRef<Path>) -> Result<Self> {
        let file = file.as_ref().to_owned();
        let before = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Self { file, before })
    }

    /// The content before any change.
    #[must_use]
    pub fn before(&self) -> &str {
        self.before.trim_end()
    }

    /// Changes the content.
    pub fn set(&self, value: &str) -> Result<()> {
        fs::write(&self.file, value).with_context(|| format!("writing {value} to {}", self.file.display()))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, &self.before) {
            eprintln!("{} could not be put back to {}: {error}", self.file.display(), self.before());
        }
    }
}

/// Highest sampling rate in Hz that the kernel takes.
pub const MAX_SAMPLE_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_comes_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "7\n").unwrap();
        let setting = Setting::of(file.path()).unwrap();
        setting.set("8").unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "8");
        drop(setting);
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "7\n");
    }
}
