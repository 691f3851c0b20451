//! The unwind tables that root's runs keep, out of the way of measurements from cold.

use std::{fs, io, path::PathBuf};

use anyhow::{Context, Result};

const CACHE: &str = "/var/cache/bpfprof/unwind";

/// The tables of earlier runs, put aside until this is dropped.
pub(super) struct CacheAside(Option<PathBuf>);

impl CacheAside {
    /// Puts them aside.
    pub(super) fn put() -> Result<Self> {
        let aside = PathBuf::from(CACHE).with_file_name(format!("unwind-aside-{}", std::process::id()));
        match fs::rename(CACHE, &aside) {
            Ok(()) => Ok(Self(Some(aside))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self(None)),
            Err(error) => Err(error).with_context(|| format!("{CACHE} cannot be moved aside")),
        }
    }

    /// Removes what runs have kept since.
    pub(super) fn empty(&self) {
        let _ = fs::remove_dir_all(CACHE);
    }
}

impl Drop for CacheAside {
    fn drop(&mut self) {
        self.empty();
        if let Some(aside) = &self.0 {
            let _ = fs::rename(aside, CACHE);
        }
    }
}
