//! Putting outputs in place: whole or not at all, and owned by the user who called sudo.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

/// Named temporaries that exist now, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// An output that will replace a path when it is finished.
///
/// It is made before sampling begins, so that a folder that cannot be written is found out early. The bytes go to a temporary, which has a
/// name only for the moment before it is renamed: readers never see half a file, a link planted at the path is replaced and not followed, and
/// nothing is left when bpfprof is killed.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    folder: PathBuf,
    temporary: Temporary,
}

#[derive(Debug)]
enum Temporary {
    /// Without a name (`O_TMPFILE`).
    Unnamed(File),
    /// With one, where the file system knows no other.
    Named(NamedTempFile),
}

impl OutputFile {
    /// Makes the temporary.
    ///
    /// # Errors
    ///
    /// When the folder does not exist or cannot be written, or the path is a folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::with_mode(path, 0o666)
    }

    /// The same for its owner alone; a file that takes the place of another may be read by those who could read that.
    ///
    /// # Errors
    ///
    /// As [`Self::create`].
    pub fn create_private(path: &Path) -> io::Result<Self> {
        let mode = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
        Self::with_mode(path, mode.map_or(0o600, |metadata| metadata.permissions().mode() & 0o666 | 0o600))
    }

    fn with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let temporary = match rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Temporary::Unnamed(file.into()),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let named = temporary_name(|name| {
                    name.permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder)
                })?;
                unfinished().push(named.path().to_path_buf());
                Temporary::Named(named)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: path.to_path_buf(), folder: folder.to_path_buf(), temporary })
    }

    /// Where the output will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the output and puts it in place. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// Those of `write`, and when the bytes cannot be written out (full disk) or the rename fails; nothing is in place then.
    pub fn fill(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
        let file = self.temporary.file();
        let mut buffered = io::BufWriter::new(file);
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        give_to_invoking_user(file)?;
        file.sync_data()?;
        let size = file.metadata()?.len();
        match self.temporary {
            Temporary::Unnamed(file) => name(&file, &self.folder, &self.path)?,
            Temporary::Named(named) => {
                let temporary = named.path().to_path_buf();
                named.persist(&self.path).map_err(|error| error.error)?;
                unfinished().retain(|path| *path != temporary);
            }
        }
        Ok(size)
    }
}

impl Temporary {
    fn file(&self) -> &File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(named) => named.as_file(),
        }
    }
}

/// Removes the temporaries of outputs that were not finished, for an exit that runs no destructors.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        // It may have been put in place a moment ago.
        let _ = fs::remove_file(path);
    }
}

/// Gives an unnamed file its path. A link cannot replace a file, so it gets another name first.
fn name(file: &File, folder: &Path, path: &Path) -> io::Result<()> {
    let link = |name: &Path| {
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, unnamed, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    };
    temporary_name(|name| name.make_in(folder, link))?.persist(path).map(drop).map_err(|error| error.error)
}

fn temporary_name<T>(make: impl FnOnce(&mut tempfile::Builder<'_, '_>) -> io::Result<T>) -> io::Result<T> {
    make(tempfile::Builder::new().prefix(".bpfprof-").suffix(".tmp"))
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// sudo says who called it; without sudo there is nothing to do.
fn give_to_invoking_user(file: &File) -> io::Result<()> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    match (number("SUDO_UID"), number("SUDO_GID")) {
        (Some(uid), Some(gid)) if rustix::process::geteuid().is_root() => fchown(file, Some(uid), Some(gid)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<u64> {
        OutputFile::create(path)?.fill(|to| to.write_all(text.as_bytes()))
    }

    #[test]
    fn an_output_replaces_what_was_there_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("out.svg"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(write(&link, "new").unwrap(), 3);
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_unfinished_output_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(OutputFile::create(&folder.path().join("a.svg")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(OutputFile::create(&folder.path().join("missing/a.svg")).is_err());
        assert!(OutputFile::create(folder.path()).is_err());
    }
}
