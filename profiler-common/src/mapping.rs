//! Executable mappings of processes, as the kernel side keeps them.

use crate::hash::WordHash;

/// Mappings remembered of one process. Further ones are remembered by [region]; there, and of those that are too large for that, the oldest
/// are overwritten.
pub const MAPPINGS_PER_PROCESS: usize = 48;

/// Mappings that are not overwritten: the program, its loader and the libraries that it began with are in nearly all stacks.
pub const FIRST_MAPPINGS: u32 = 8;

/// Mappings that a search looks at in one go. Most processes have no more.
pub const MAPPINGS_PER_BLOCK: usize = 8;

const _: () = assert!(MAPPINGS_PER_PROCESS.is_multiple_of(MAPPINGS_PER_BLOCK));

/// Bits of an address inside a region: 512 KiB hold no more than 32 of the smallest libraries, which take four pages.
const REGION_SHIFT: u32 = 19;

/// Numbers of regions. Regions of a process that are a multiple of so many apart share a number, and so their place.
pub const REGIONS: u64 = 128;

/// Most regions of a mapping that is remembered by region.
pub const MAX_REGIONS_OF_MAPPING: u64 = 8;

/// Number of the region that an address lies in.
#[inline(always)]
#[must_use]
pub const fn region(address: u64) -> u64 {
    (address >> REGION_SHIFT) & (REGIONS - 1)
}

/// How many regions this range touches.
#[inline(always)]
#[must_use]
pub const fn regions(start: u64, end: u64) -> u64 {
    (end.wrapping_sub(1) >> REGION_SHIFT).wrapping_sub(start >> REGION_SHIFT).wrapping_add(1)
}

/// Key of the mappings of a process in a region.
#[inline(always)]
#[must_use]
pub const fn region_key(tgid: u32, region: u64) -> u64 {
    (tgid as u64) << 32 | (region & (REGIONS - 1))
}

/// Bits of an address inside a page. Offsets are kept in pages of this size, whatever the machine's own is.
pub const PAGE_SHIFT: u32 = 12;

/// Executable mappings of a process that samples have hit, or that its program began with; or those of a process in a region.
///
/// Several CPUs may write at the same time. An entry that two have written at once is told by its [seal](Mapping::seal).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ProcessMappings {
    /// Program image these belong to (`task_struct.self_exec_id`, low half).
    pub exec_id: u32,
    /// Entry that the next mapping goes to, unless it covers another.
    pub next: u32,
    /// Entries from this one on have never been used.
    pub used: u32,
    /// Of a process: not 0 if it had mappings that are remembered by region, at some time.
    pub by_region: u32,
    /// The mappings, in no order; void ones have no pages.
    pub entries: [Mapping; MAPPINGS_PER_PROCESS],
}

/// One executable mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Length in pages; 0 for an entry that is void.
    pub pages: u32,
    /// Place of the first byte in the file, in pages.
    pub file_page: u32,
    /// What is mapped.
    pub file: FileKey,
    /// Hash of the rest: an entry with another one is void.
    pub seal: u64,
}

/// What identifies a file to the kernel side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FileKey(pub u64);

impl FileKey {
    /// No file: a request for it says that a program has begun.
    pub const NONE: Self = Self(0);

    /// The kernel's virtual object, which has no file.
    pub const VDSO: Self = Self(2);

    /// The key of a file with this identity.
    ///
    /// `modified` is the time of modification, in seconds and nanoseconds. `device` is the kernel's encoding of a device number (`MKDEV`: minor in the low 20 bits). A file that is written again has
    /// another size or time, so it has another key.
    #[inline(always)]
    #[must_use]
    pub const fn new(device: u64, inode: u64, size: u64, modified: (u64, u32)) -> Self {
        // Real keys are odd.
        Self(WordHash::EMPTY.add(device).add(inode).add(size).add(modified.0).add(modified.1 as u64).finish())
    }
}

/// What the kernel side knows of a file.
///
/// Entries are replaced while programs read them. One that was read half is told by its [seal](FileEntry::seal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FileEntry {
    /// Number of the object; frames in it are normalised. [`NO_OBJECT`] while userspace does not know the file.
    pub object: u32,
    /// First entry of its pages in the page index.
    pub first_page: u32,
    /// Pages of 64 KiB with rows, from `base_page` on; 0 when there is no unwind table.
    pub pages: u32,
    /// Number of the first page with rows; without any, [`Self::NO_RULES`] or 0.
    pub base_page: u32,
    /// Hash of the rest and of the file: an entry with another one is void.
    pub seal: u64,
}

/// A [`FileEntry`] that was asked for and is not answered yet.
pub const NO_OBJECT: u32 = u32::MAX;

impl FileEntry {
    /// Value of `base_page` for an object that has no call-frame information: no table will come.
    pub const NO_RULES: u32 = u32::MAX;

    /// Asked for, not answered. It is taken without a seal.
    pub const REQUESTED: Self = Self { object: NO_OBJECT, first_page: 0, pages: 0, base_page: 0, seal: 0 };

    /// A file that holds no object.
    pub const NO_FILE_OBJECT: Self = Self::without_table(NO_OBJECT, false);

    /// An object without a table. `will_follow` says whether one may still come.
    #[must_use]
    pub const fn without_table(object: u32, will_follow: bool) -> Self {
        let base_page = if will_follow { 0 } else { Self::NO_RULES };
        Self { object, base_page, ..Self::REQUESTED }
    }

    /// The entry as it is kept for this file.
    #[inline(always)]
    #[must_use]
    pub const fn sealed(self, file: FileKey) -> Self {
        let words = WordHash::EMPTY.add(file.0).add((self.object as u64) << 32 | self.first_page as u64);
        let seal = words.add((self.pages as u64) << 32 | self.base_page as u64).finish();
        Self { seal, ..self }
    }

    /// The entry if it was written for this file by one hand, else one that is asked for.
    #[inline(always)]
    #[must_use]
    pub const fn sound(self, file: FileKey) -> Self {
        if self.sealed(file).seal == self.seal { self } else { Self::REQUESTED }
    }
}

/// Asks userspace for a file that a sample hit, or that a program began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FileRequest {
    /// The file.
    pub file: FileKey,
    /// Address of the process at which it is mapped.
    pub address: u64,
    /// When it was asked, in nanoseconds of `CLOCK_MONOTONIC`: what the process had mapped then is the answer.
    pub time: u64,
    /// The process.
    pub tgid: u32,
    /// Fills the word.
    pub padding: u32,
}

impl Mapping {
    /// An entry that is void.
    pub const VOID: Self = Self { start: 0, pages: 0, file_page: 0, file: FileKey(0), seal: 0 };

    /// Makes the entry void.
    #[inline(always)]
    pub const fn void(&mut self) {
        self.pages = 0;
    }

    /// A mapping with its seal.
    #[inline(always)]
    #[must_use]
    pub const fn new(start: u64, pages: u32, file_page: u32, file: FileKey) -> Self {
        Self { start, pages, file_page, file, seal: Self::seal(start, pages, file_page, file) }
    }

    /// Whether it was written by one hand.
    #[inline(always)]
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.seal == Self::seal(self.start, self.pages, self.file_page, self.file)
    }

    const fn seal(start: u64, pages: u32, file_page: u32, file: FileKey) -> u64 {
        WordHash::EMPTY.add(start).add((file_page as u64) << 32 | pages as u64).add(file.0).finish()
    }

    /// Place in the file of the byte at this address; `None` when it is not mapped here.
    #[inline(always)]
    #[must_use]
    pub const fn file_offset(&self, address: u64) -> Option<u64> {
        let at = address.wrapping_sub(self.start);
        if at < (self.pages as u64) << PAGE_SHIFT {
            Some(at + ((self.file_page as u64) << PAGE_SHIFT))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_lies_in_the_regions_of_its_addresses() {
        assert_eq!((regions(0x8_0000, 0x10_0000), region(0xf_ffff)), (1, 1));
        assert_eq!((regions(0x7_f000, 0x10_1000), region(0x10_0000)), (3, 2));
        assert_eq!(region(REGIONS << REGION_SHIFT), 0);
        assert_ne!(region_key(1, 0), region_key(2, 0));
    }

    #[test]
    fn offsets_follow_the_mapping() {
        let mapping = Mapping::new(0x7000, 2, 5, FileKey(1));
        assert_eq!(mapping.file_offset(0x7000), Some(0x5000));
        assert_eq!(mapping.file_offset(0x8fff), Some(0x6fff));
        assert_eq!((mapping.file_offset(0x6fff), mapping.file_offset(0x9000)), (None, None));
        assert_eq!(Mapping::VOID.file_offset(0), None);
    }

    #[test]
    fn a_torn_entry_is_told() {
        let mapping = Mapping::new(0x7000, 2, 5, FileKey(1));
        assert!(mapping.is_sound());
        assert!(!Mapping { file: FileKey(3), ..mapping }.is_sound() && !Mapping::VOID.is_sound());
    }

    #[test]
    fn an_entry_of_another_file_or_of_two_writers_is_told() {
        let entry = FileEntry { object: 1, first_page: 2, pages: 3, base_page: 4, seal: 0 };
        let sealed = entry.sealed(FileKey(5));
        assert_eq!(sealed.sound(FileKey(5)), sealed);
        assert_eq!(sealed.sound(FileKey(7)), FileEntry::REQUESTED);
        assert_eq!(FileEntry { first_page: 9, ..sealed }.sound(FileKey(5)), FileEntry::REQUESTED);
        assert_eq!(FileEntry::REQUESTED.sound(FileKey(5)), FileEntry::REQUESTED);
    }

    #[test]
    fn a_rewritten_file_has_another_key() {
        assert_ne!(FileKey::new(1, 2, 3, (4, 0)), FileKey::new(1, 2, 3, (4, 1)));
        assert_ne!(FileKey::new(1, 2, 3, (4, 0)), FileKey::VDSO);
    }
}
