//! Opening a file that holds a profile.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use super::{MOST_BYTES, read};
use crate::profile::Profile;

/// Reads the profile in a file; `-` is stdin.
///
/// # Errors
///
/// When the file cannot be read, or holds no profile ([`read`]).
pub fn open(path: &Path) -> anyhow::Result<Profile> {
    let what = || format!("cannot read {}", path.display());
    let bytes = if path == Path::new("-") {
        content(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| content(&mut file))
    };
    let bytes = bytes.with_context(what)?;
    read(&bytes).with_context(what)
}

/// All bytes, or one more than are read: files may grow and never end.
fn content(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
