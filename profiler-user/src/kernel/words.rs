//! BPF arrays as memory of this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// A BPF array in this process's memory, as words that the kernel may change.
pub(super) struct Words {
    memory: MmapRaw,
    len: usize,
}

impl Words {
    /// Maps an array of this many words.
    pub(super) fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let memory = MmapOptions::new().len(len * 8).map_raw(fd.as_raw_fd())?;
        Ok(Self { memory, len })
    }

    /// The word at this index.
    pub(super) fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Sets the word at this index.
    pub(super) fn store(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < self.len, "word {at} of a map of {}", self.len);
        // SAFETY: the index was checked, so the word lies in the mapping.
        let word = unsafe { self.memory.as_mut_ptr().cast::<u64>().add(at) };
        // SAFETY: the mapping is writable, aligned to a page and lives as long as `self`; the kernel writes whole words.
        unsafe { AtomicU64::from_ptr(word) }
    }
}
