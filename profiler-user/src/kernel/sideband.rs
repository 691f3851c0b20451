//! Side-band records: what processes map, execute, fork, and when they end.
//!
//! The kernel writes them to a ring of each CPU (`PERF_RECORD_MMAP2`, `COMM`, `FORK`, `EXIT`), with the clock that samples use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use perf_event::events::Software;
use perf_event::{Builder, ReadFormat, SampleFlag, Sampler as Ring};
use perf_event_data::{Comm, Exit, Fork, Lost, Mmap2, RecordMetadata, Visitor, parse::Parser};
use perf_event_open_sys::bindings;
use rustix::event::epoll;

use super::KernelError;
use crate::events::CpuId;
use crate::types::{FileOffset, MonotonicTime, Tgid, UserAddress};

/// A change in the life of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SidebandRecord {
    /// The process mapped executable memory.
    Mapped {
        /// Process.
        tgid: Tgid,
        /// What was mapped, and where.
        mapped: Mapped,
    },
    /// The process began a new program: all earlier mappings are gone.
    Executed {
        /// Process.
        tgid: Tgid,
    },
    /// A process began as a copy of its parent.
    Forked {
        /// The parent.
        parent: Tgid,
        /// The child.
        child: Tgid,
    },
    /// The first thread of the process ended.
    Exited {
        /// Process.
        tgid: Tgid,
    },
}

/// Executable memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// First address.
    pub start: UserAddress,
    /// Length in bytes.
    pub len: u64,
    /// Place of the first byte in the file.
    pub file_offset: FileOffset,
    /// Path in the process's mount namespace, or a name in brackets or after slashes that the kernel gives to memory without a file.
    pub path: Vec<u8>,
    /// What the kernel says about the file; `None` where it cannot tell.
    pub file: Option<MappedFile>,
}

impl Mapped {
    /// What a process will map that executes the program at this path; `None` when there is no such file.
    #[must_use]
    pub fn of_program(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let metadata = fs::metadata(&path).ok()?;
        Some(Self {
            start: UserAddress(0),
            len: 0,
            file_offset: FileOffset(0),
            path: path.into_os_string().into_vec(),
            file: Some(MappedFile::Inode { device: metadata.dev(), inode: metadata.ino() }),
        })
    }
}

/// How the kernel identifies a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappedFile {
    /// By the build id in its notes (since 5.12, where the page with the notes is resident).
    BuildId(BuildId),
    /// By device and inode.
    Inode {
        /// Device number as `stat` gives it.
        device: u64,
        /// Inode number.
        inode: u64,
    },
}

/// A build id of up to 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// The build id with these bytes; `None` when there are none or too many.
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; 20];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        (!id.is_empty()).then_some(Self { bytes, len: id.len() as u8 })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Lower-case hexadecimal digits, as in the names of debug files.
impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The rings of all CPUs.
pub struct Sideband {
    rings: BTreeMap<CpuId, Ring>,
    /// Becomes readable when a ring has records.
    readiness: OwnedFd,
    /// Records that were looked at and are later than the last cut.
    pending: Vec<(MonotonicTime, SidebandRecord)>,
    /// Records that were read and not looked at, since others from before them may still be unread.
    unseen: Vec<(MonotonicTime, SidebandRecord)>,
    lost: u64,
}

/// Bytes of each ring: a second of 1000 short processes fits. Halved while the kernel refuses to lock that much memory.
const RING_BYTES: usize = 1 << 20;

/// The smallest ring that is worth having.
const MIN_RING_BYTES: usize = 1 << 15;

/// Bytes of records that make a ring readable. A wake-up for each record would cost an interrupt and a switch to this process, several times
/// the `mmap` that it tells of; whoever needs records sooner [looks](Sideband::look).
const WAKING_BYTES: u32 = 1 << 14;

impl Sideband {
    /// Opens a ring on each of these CPUs; records flow from here on.
    pub fn open(cpus: impl IntoIterator<Item = CpuId>) -> Result<Self, KernelError> {
        let readiness = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| KernelError::System { call: "epoll_create1", error: error.into() })?;
        let mut sideband =
            Self { rings: BTreeMap::new(), readiness, pending: Vec::new(), unseen: Vec::new(), lost: 0 };
        for cpu in cpus {
            sideband.add_cpu(cpu)?;
        }
        Ok(sideband)
    }

    /// Opens rings on CPUs that came online; reads those of CPUs that went offline to their end and closes them.
    pub fn follow_cpus(&mut self, online: &BTreeSet<CpuId>) -> Result<(), KernelError> {
        let gone: Vec<CpuId> = self.rings.keys().filter(|cpu| !online.contains(cpu)).copied().collect();
        for cpu in gone {
            if let Some(mut ring) = self.rings.remove(&cpu) {
                self.lost += read_ring(&mut ring, &mut self.unseen);
            }
        }
        let new: Vec<CpuId> = online.iter().filter(|cpu| !self.rings.contains_key(cpu)).copied().collect();
        new.into_iter().try_for_each(|cpu| self.add_cpu(cpu))
    }

    fn add_cpu(&mut self, cpu: CpuId) -> Result<(), KernelError> {
        let ring = match open_ring(cpu) {
            // It went offline again.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
            ring => ring.map_err(KernelError::system("perf_event_open of the side-band records"))?,
        };
        // SAFETY: the descriptor is open as long as the ring, which is not dropped in this function.
        let fd = unsafe { BorrowedFd::borrow_raw(ring.as_counter().as_raw_fd()) };
        epoll::add(&self.readiness, fd, epoll::EventData::new_u64(cpu.0.into()), epoll::EventFlags::IN)
            .map_err(|error| KernelError::System { call: "epoll_ctl", error: error.into() })?;
        self.rings.insert(cpu, ring);
        Ok(())
    }

    /// Reads the rings and shows the records from before this call that are new, in the order of time across CPUs; they stay to be taken.
    pub fn look(&mut self) -> &[(MonotonicTime, SidebandRecord)] {
        let until = MonotonicTime::now();
        for ring in self.rings.values_mut() {
            self.lost += read_ring(ring, &mut self.unseen);
        }
        let known = self.pending.len();
        self.pending.extend(split_until(&mut self.unseen, until));
        &self.pending[known..]
    }

    /// The records up to and including this time that were looked at and not taken yet, ordered by time across CPUs.
    ///
    /// The caller makes sure that none from before `until` was still being written when it [looked](Self::look).
    pub fn take_until(&mut self, until: MonotonicTime) -> Vec<(MonotonicTime, SidebandRecord)> {
        split_until(&mut self.pending, until)
    }

    /// Records that the kernel could not write because a ring was full, so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Takes out the records up to and including this time, and orders them.
fn split_until(
    records: &mut Vec<(MonotonicTime, SidebandRecord)>,
    until: MonotonicTime,
) -> Vec<(MonotonicTime, SidebandRecord)> {
    // Stable: records of one CPU keep their order at equal times.
    records.sort_by_key(|(time, _)| *time);
    let later = records.partition_point(|(time, _)| *time <= until);
    let rest = records.split_off(later);
    std::mem::replace(records, rest)
}

impl AsFd for Sideband {
    /// A descriptor that becomes readable when there are many records.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }
}

fn open_ring(cpu: CpuId) -> io::Result<Ring> {
    let mut bytes = RING_BYTES;
    loop {
        match open_event(cpu)?.sampled(bytes) {
            Ok(ring) => return Ok(ring),
            Err(_) if bytes > MIN_RING_BYTES => bytes /= 2,
            Err(error) => return Err(error),
        }
    }
}

fn open_event(cpu: CpuId) -> io::Result<perf_event::Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    builder.any_pid().one_cpu(cpu.0 as usize).read_format(ReadFormat::empty());
    let attrs = builder.attrs_mut();
    attrs.sample_type = (SampleFlag::TID | SampleFlag::TIME).bits();
    attrs.set_disabled(0);
    attrs.set_mmap(1);
    attrs.set_mmap2(1);
    attrs.set_comm(1);
    attrs.set_comm_exec(1);
    attrs.set_task(1);
    attrs.set_build_id(1);
    attrs.set_sample_id_all(1);
    attrs.set_use_clockid(1);
    attrs.clockid = libc::CLOCK_MONOTONIC;
    attrs.set_watermark(1);
    attrs.__bindgen_anon_2.wakeup_watermark = WAKING_BYTES;
    builder.build()
}

/// Appends the records of a ring; returns how many the kernel had to drop.
fn read_ring(ring: &mut Ring, into: &mut Vec<(MonotonicTime, SidebandRecord)>) -> u64 {
    let config = ring.as_counter().config().clone();
    let mut lost = 0;
    while let Some(record) = ring.next_record() {
        let bytes = record.to_contiguous();
        let header = bindings::perf_event_header {
            type_: record.ty(),
            misc: record.misc(),
            size: (record.len() + 8) as u16,
        };
        let mut parser = Parser::new(&*bytes, config.clone());
        // A record that does not parse is one this code has no use for.
        match parser.parse_record_with_header(Reader, header) {
            Ok(Parsed::Record(time, record)) => into.push((time, record)),
            Ok(Parsed::Lost(records)) => lost += records,
            Ok(Parsed::Other) | Err(_) => {}
        }
    }
    lost
}

enum Parsed {
    Record(MonotonicTime, SidebandRecord),
    Lost(u64),
    Other,
}

struct Reader;

impl<'a> Visitor<'a> for Reader {
    type Output = Parsed;

    fn visit_unimplemented(self, _: RecordMetadata) -> Parsed {
        Parsed::Other
    }

    fn visit_lost(self, record: Lost, _: RecordMetadata) -> Parsed {
        Parsed::Lost(record.lost)
    }

    fn visit_mmap2(self, record: Mmap2<'a>, metadata: RecordMetadata) -> Parsed {
        let file = match (record.build_id(), record.maj(), record.min(), record.ino()) {
            (Some(id), ..) => BuildId::new(id).map(MappedFile::BuildId),
            (None, Some(major), Some(minor), Some(inode)) if inode != 0 => {
                Some(MappedFile::Inode { device: rustix::fs::makedev(major, minor), inode })
            }
            _ => None,
        };
        let mapped = Mapped {
            start: UserAddress(record.addr),
            len: record.len,
            file_offset: FileOffset(record.pgoff),
            path: record.filename.to_vec(),
            file,
        };
        at(&metadata, SidebandRecord::Mapped { tgid: Tgid(record.pid), mapped })
    }

    fn visit_comm(self, record: Comm<'a>, metadata: RecordMetadata) -> Parsed {
        if u32::from(metadata.misc()) & bindings::PERF_RECORD_MISC_COMM_EXEC == 0 {
            return Parsed::Other;
        }
        at(&metadata, SidebandRecord::Executed { tgid: Tgid(record.pid) })
    }

    fn visit_fork(self, record: Fork, _: RecordMetadata) -> Parsed {
        if record.pid == record.ppid {
            return Parsed::Other;
        }
        let forked = SidebandRecord::Forked { parent: Tgid(record.ppid), child: Tgid(record.pid) };
        Parsed::Record(MonotonicTime(record.time), forked)
    }

    fn visit_exit(self, record: Exit, _: RecordMetadata) -> Parsed {
        if record.pid != record.tid {
            return Parsed::Other;
        }
        Parsed::Record(MonotonicTime(record.time), SidebandRecord::Exited { tgid: Tgid(record.pid) })
    }
}

fn at(metadata: &RecordMetadata, record: SidebandRecord) -> Parsed {
    match metadata.sample_id().time() {
        Some(time) => Parsed::Record(MonotonicTime(time), record),
        None => Parsed::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_in_the_order_of_time() {
        let record = |time, tgid| (MonotonicTime(time), SidebandRecord::Exited { tgid: Tgid(tgid) });
        let mut records = vec![record(5, 1), record(9, 2), record(3, 3), record(5, 4)];
        assert_eq!(split_until(&mut records, MonotonicTime(5)), [record(3, 3), record(5, 1), record(5, 4)]);
        assert_eq!(records, [record(9, 2)]);
    }

    #[test]
    fn build_ids_keep_their_length() {
        assert_eq!(BuildId::new(&[1, 2]).map(|id| id.as_bytes().to_vec()), Some(vec![1, 2]));
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[0; 21]), None);
    }
}
