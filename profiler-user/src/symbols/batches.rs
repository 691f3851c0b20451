//! Naming many objects: those with most samples first, several at a time, within limits of time and memory.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{Resolution, SymbolOptions, user};
use crate::processes::{ObjectId, Objects};
use crate::profile::{RawFrame, Recording};
use crate::types::FileOffset;

/// The places of an object that need names.
pub(super) struct Batch {
    pub(super) object: ObjectId,
    /// Sorted, each once.
    pub(super) offsets: Vec<FileOffset>,
    /// Samples that have it in their stack.
    pub(super) samples: u64,
}

/// What was found for a batch.
pub(super) struct Named {
    pub(super) object: ObjectId,
    pub(super) names: Vec<(FileOffset, Resolution)>,
}

/// Threads at most: they wait for memory and disks more than for CPUs.
const MOST_THREADS: usize = 8;

/// Size of the files that are read at the same time, in bytes. One that is larger is read alone.
const MOST_BYTES: u64 = 1 << 30;

/// The time for all names.
pub(super) struct Clock {
    begun: Instant,
    limit: Duration,
    /// Nanoseconds that servers took, which have a limit of their own.
    waited: AtomicU64,
    is_over: AtomicBool,
}

impl Clock {
    pub(super) fn start(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit, waited: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    /// What is left; `None` once it is over.
    pub(super) fn left(&self) -> Option<Duration> {
        let waited = Duration::from_nanos(self.waited.load(Ordering::Relaxed));
        let left = (self.limit + waited).checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero());
        if left.is_none() {
            self.end();
        }
        left
    }

    /// An object took all that was left, or there is nothing left for it.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether some names were cut short by the limit.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Does what has a limit of its own.
    pub(super) fn outside<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(took, Ordering::Relaxed);
        result
    }
}

/// Names all batches. `progress` hears of each how many were done before it, and how many there are.
pub(super) fn name_all(
    mut batches: Vec<Batch>,
    objects: &Objects,
    options: &SymbolOptions,
    clock: &Clock,
    progress: &mut dyn FnMut(usize, usize),
) -> Vec<Named> {
    // The last is taken first. One order in all runs.
    batches.sort_by_key(|batch| (batch.samples, std::cmp::Reverse(batch.object)));
    let all = batches.len();
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS).min(all);
    let queue = Queue::new(batches, objects);
    let (sender, results) = mpsc::channel();
    progress(0, all);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                while let Some((batch, bytes)) = queue.take() {
                    let names = user::resolve(objects, batch.object, &batch.offsets, options, clock);
                    queue.give_back(bytes);
                    let names = batch.offsets.into_iter().zip(names).collect();
                    // The receiver waits for all.
                    let _ = sender.send(Named { object: batch.object, names });
                }
            });
        }
        drop(sender);
        let mut named = Vec::with_capacity(all);
        for result in results {
            named.push(result);
            progress(named.len(), all);
        }
        named
    })
}

/// Samples that have each object in their stack.
pub(super) fn samples_by_object(recording: &Recording) -> HashMap<ObjectId, u64> {
    let mut of_stack = vec![0; recording.stacks().len()];
    for (key, amount) in recording.samples() {
        of_stack[key.stack as usize] += amount.samples;
    }
    let mut samples: HashMap<ObjectId, u64> = HashMap::new();
    for (stack, count) in recording.stacks().iter().zip(of_stack) {
        let frames = stack.frames.iter().map(|&frame| recording.frames()[frame as usize]);
        let mut objects: Vec<ObjectId> = frames.filter_map(RawFrame::object).collect();
        objects.sort_unstable();
        objects.dedup();
        for object in objects {
            *samples.entry(object).or_default() += count;
        }
    }
    samples
}

/// Batches that wait, and the bytes of files that are being read.
struct Queue {
    state: Mutex<(Vec<(Batch, u64)>, u64)>,
    freed: Condvar,
}

impl Queue {
    fn new(batches: Vec<Batch>, objects: &Objects) -> Self {
        let sized = batches.into_iter().map(|batch| {
            let bytes = objects.get(batch.object).size().min(MOST_BYTES);
            (batch, bytes)
        });
        Self { state: Mutex::new((sized.collect(), 0)), freed: Condvar::new() }
    }

    /// The next batch, once there is room for its file; `None` when there is no more.
    fn take(&self) -> Option<(Batch, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (waiting, reading) = &mut *state;
            let bytes = waiting.last()?.1;
            if *reading + bytes <= MOST_BYTES {
                *reading += bytes;
                return waiting.pop();
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, bytes: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 -= bytes;
        self.freed.notify_all();
    }
}
