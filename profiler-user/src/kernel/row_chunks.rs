//! Chunks of unwind rows: maps of one size, made ahead of their need.
//!
//! The kernel lets a program see a new chunk at once, but the call that puts it in its place returns only when all programs have ended
//! that run (`maybe_wait_bpf_programs` in `kernel/bpf/syscall.c`): ten milliseconds and more, in which nothing else would be done.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use aya::maps::{Array, ArrayOfMaps, Map, MapData, MapError};
use aya_obj::generated::{BPF_F_MMAPABLE, bpf_map_type::BPF_MAP_TYPE_ARRAY};
use profiler_common::limits::CHUNK_ROWS;
use range_alloc::RangeAllocator;

use super::KernelError;
use super::words::Words;
use crate::precedence::Precedence;

/// The kernel's places for chunks.
pub(super) type Places = ArrayOfMaps<MapData, Array<MapData, u64>>;

/// A chunk in its place.
pub(super) struct Chunk {
    pub(super) rows: Words,
    pub(super) free: RangeAllocator<u32>,
    /// Keeps the map: the kernel's place for it holds no reference that userspace can map.
    _map: Array<MapData, u64>,
}

/// A thread that makes chunks, and the chunks it has made so far.
pub(super) struct RowChunks {
    made: Vec<Chunk>,
    /// Those asked for.
    asked: u32,
    limit: u32,
    requests: Sender<u32>,
    answers: Receiver<Result<Chunk, KernelError>>,
}

impl RowChunks {
    /// Starts the thread. There will be up to `limit` chunks.
    pub(super) fn start(mut places: Places, limit: u32) -> io::Result<Self> {
        let ((requests, asked), (answer, answers)) = (channel(), channel());
        let make = move || {
            let _precedence = Precedence::take();
            while let Ok(number) = asked.recv()
                && answer.send(Chunk::new(&mut places, number)).is_ok()
            {}
        };
        thread::Builder::new().name("unwind-chunks".into()).spawn(make)?;
        Ok(Self { made: Vec::new(), asked: 0, limit, requests, answers })
    }

    /// Chunks that rows may be in, in the order of their numbers.
    pub(super) fn made(&mut self) -> &mut [Chunk] {
        &mut self.made
    }

    /// Has chunks made until there is room for this many rows, as far as the limit goes.
    pub(super) fn make_ready(&mut self, rows: usize) {
        let in_making = (self.asked as usize - self.made.len()) * CHUNK_ROWS as usize;
        let missing = rows.saturating_sub(self.free() + in_making).div_ceil(CHUNK_ROWS as usize);
        (0..missing).for_each(|_| {
            self.ask();
        });
    }

    /// One chunk more; false at the limit.
    pub(super) fn add(&mut self) -> Result<bool, KernelError> {
        if self.asked as usize == self.made.len() && !self.ask() {
            return Ok(false);
        }
        let ended =
            || KernelError::System { call: "making a BPF map", error: io::ErrorKind::BrokenPipe.into() };
        self.made.push(self.answers.recv().map_err(|_| ended())??);
        Ok(true)
    }

    /// Number of chunks that take memory.
    pub(super) fn count(&self) -> u32 {
        self.asked
    }

    /// Rows that there is room for, in pieces, up to the limit.
    pub(super) fn free_up_to_limit(&self) -> usize {
        (self.limit as usize).saturating_sub(self.made.len()) * CHUNK_ROWS as usize + self.free()
    }

    fn free(&self) -> usize {
        self.made.iter().map(|chunk| chunk.free.total_available() as usize).sum()
    }

    fn ask(&mut self) -> bool {
        let may = self.asked < self.limit;
        // A thread that ended has no answers either: that is told where one is waited for.
        if may && self.requests.send(self.asked).is_ok() {
            self.asked += 1;
        }
        may
    }
}

impl Chunk {
    fn new(places: &mut Places, number: u32) -> Result<Self, KernelError> {
        let no_memory =
            |error: MapError| KernelError::Load { cause: format!("no memory for unwind tables: {error}") };
        let definition =
            aya_obj::Map::new_from_params(BPF_MAP_TYPE_ARRAY as u32, 4, 8, CHUNK_ROWS, BPF_F_MMAPABLE);
        let data = MapData::create(definition, "unwind_rows", None).map_err(no_memory)?;
        let rows = Words::map(data.fd().as_fd(), CHUNK_ROWS as usize);
        let rows = rows.map_err(KernelError::system("mmap of a BPF map"))?;
        let map = Array::try_from(Map::Array(data)).map_err(no_memory)?;
        places.set(number, &map, 0).map_err(no_memory)?;
        Ok(Self { rows, free: RangeAllocator::new(0..CHUNK_ROWS), _map: map })
    }
}
