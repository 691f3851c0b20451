//! Tables on disk: the largest objects take longer to compile than a short program runs.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::time::SystemTime;

use profiler_common::hash::WordHash;
use profiler_common::unwind::row::Row;

use super::table::Table;

/// A folder with tables, by the identity of their objects.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// Begins every file; changes with the compiler, the form of rows and the form of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"bpfrows5");

/// Tables with fewer rows are compiled faster than they are looked up.
const MIN_ROWS: usize = 50_000;

/// Files that are kept; the ones not used for longest go first.
const MAX_FILES: usize = 64;

impl Cache {
    /// The cache below this folder, which is made when it is first written. Nothing is read from a folder that others may write.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The table of an object, if it is there and whole. `expect` hears before it is read how many rows it has, more or less.
    pub(super) fn load(&self, object: &File, expect: &dyn Fn(usize)) -> Option<Table> {
        if !self.is_ours() {
            return None;
        }
        let path = self.path(object)?;
        let mut bytes = Vec::new();
        let mut file = File::open(&path).ok()?;
        expect(usize::try_from(file.metadata().ok()?.len() / size_of::<Row>() as u64).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        let table = decode(&bytes)?;
        // Its age tells which file to drop; a cache that cannot be written serves all the same.
        let _ = file.set_modified(SystemTime::now());
        Some(table)
    }

    /// Keeps a table that took long to compile.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn store(&self, object: &File, table: &Table) -> io::Result<()> {
        if table.row_count() < MIN_ROWS {
            return Ok(());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let Some(path) = self.path(object).filter(|_| self.is_ours()) else { return Ok(()) };
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder)?;
        temporary.write_all(&encode(table))?;
        temporary.persist(path).map_err(|error| error.error)?;
        self.drop_oldest()
    }

    fn is_ours(&self) -> bool {
        let ours = rustix::process::geteuid().as_raw();
        fs::metadata(&self.folder).is_ok_and(|folder| folder.uid() == ours && folder.mode() & 0o022 == 0)
    }

    /// A file that is written again has another size or time, so it has another name here.
    fn path(&self, object: &File) -> Option<PathBuf> {
        let metadata = object.metadata().ok()?;
        let words = [
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
        ];
        // Two hashes with different beginnings: 128 bits.
        let hash =
            |begin: u64| words.iter().fold(WordHash::EMPTY.add(begin), |hash, &word| hash.add(word)).finish();
        Some(self.folder.join(format!("{:016x}{:016x}", hash(1), hash(2))))
    }

    fn drop_oldest(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(&self.folder)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        files.sort_unstable();
        let surplus = files.len().saturating_sub(MAX_FILES);
        files.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

fn encode(table: &Table) -> Vec<u8> {
    let words = table.to_words();
    let header = [MAGIC, words.len() as u64, checksum(&words)];
    header.iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect()
}

/// `None` for anything that [`encode`] did not write.
fn decode(bytes: &[u8]) -> Option<Table> {
    let (words, []) = bytes.as_chunks::<8>() else { return None };
    let words: Vec<u64> = words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let [MAGIC, len, sum, words @ ..] = words.as_slice() else { return None };
    if words.len() as u64 != *len || checksum(words) != *sum {
        return None;
    }
    Table::from_words(words)
}

fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(WordHash::EMPTY, |hash, &word| hash.add(word)).finish()
}

#[cfg(test)]
mod tests {
    use profiler_common::unwind::row::{Cfa, Rule};

    use super::*;
    use crate::unwind::table::TableBuilder;

    fn large() -> Table {
        let mut builder = TableBuilder::collecting();
        for at in 0..MIN_ROWS as u64 + 10 {
            builder.begin(at * 20, Rule::only(Cfa::Sp(8 + 8 * (at % 2) as u32)));
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_table_comes_back_for_the_same_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("tables"));
        let object = tempfile::NamedTempFile::new().unwrap();
        let table = large();
        cache.store(object.as_file(), &table).unwrap();
        assert_eq!(cache.load(object.as_file(), &|_| ()).unwrap().to_words(), table.to_words());
        object.as_file().set_len(1).unwrap();
        assert!(cache.load(object.as_file(), &|_| ()).is_none());
    }

    #[test]
    fn a_damaged_file_or_a_folder_of_others_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("tables"));
        let object = tempfile::NamedTempFile::new().unwrap();
        cache.store(object.as_file(), &large()).unwrap();
        let path = cache.path(object.as_file()).unwrap();
        let whole = fs::read(&path).unwrap();
        for damage in [0, 8, 16, 24, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[damage] ^= 1;
            fs::write(&path, bytes).unwrap();
            assert!(cache.load(object.as_file(), &|_| ()).is_none(), "byte {damage}");
        }
        fs::write(&path, &whole[..whole.len() - 8]).unwrap();
        assert!(cache.load(object.as_file(), &|_| ()).is_none());
        fs::write(&path, &whole).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cache.load(object.as_file(), &|_| ()).is_none());
    }
}
