//! Draining the sample tables through mapped memory.
//!
//! A map system call would silence sampling on its CPU for as long as it runs (`bpf_prog_active`), and nobody would count
//! what is missing. So the tables are read and emptied as plain memory.

use std::thread;
use std::time::Duration;

use profiler_common::counters::{self, Whose, increase_index, residual_index};
use profiler_common::frame::UserFrame;
use profiler_common::sample::{SampleSlot, TableLayout};
use profiler_common::stack::{Guess, StackEnd};
use profiler_common::tally::{self, Fate, state};

use super::KernelError;
use super::accounting::Amount;
use super::programs::{self, Layout, Programs};
use super::words::Words;
use crate::types::{KernelAddress, MonotonicTime, Tgid, Tid};

/// Samples of one task with one stack, as they left the kernel.
#[derive(Debug)]
pub struct RawSample<'a> {
    /// Process.
    pub tgid: Tgid,
    /// Thread.
    pub tid: Tid,
    /// Command name of the thread, without its NULs.
    pub comm: &'a [u8],
    /// Index of the event.
    pub event: u16,
    /// Time of the first of these samples.
    pub first: MonotonicTime,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the sampling periods, in the event's unit.
    pub weight: u64,
    /// Readings of each counter that found it increased, and the increases added up; empty unless counters are read at samples.
    pub increases: &'a [Amount],
    /// How the user stack ended.
    pub end: StackEnd,
    /// What frame pointers stood in for on the way.
    pub guess: Guess,
    /// Whether user code was interrupted; otherwise the user frames are the way into the kernel.
    pub user_mode: bool,
    /// User frames, innermost first; callers by the last byte of their call.
    pub user: &'a [UserFrame],
    /// Kernel frames, innermost first.
    pub kernel: &'a [KernelAddress],
}

/// The tables of all CPUs, in this process's memory.
pub(super) struct Tables {
    layout: TableLayout,
    cpus: u32,
    slots: Words,
    frames: Words,
    frames_used: Words,
    tally: Words,
    state: Words,
    counters: u32,
    increases: Words,
    residuals: Words,
    generation: u32,
}

impl Tables {
    /// Maps the tables of a loaded object.
    pub(super) fn map(programs: &Programs, layout: Layout) -> Result<Self, KernelError> {
        let Layout { tables: layout, cpus, counters, .. } = layout;
        let tables = cpus as usize * profiler_common::limits::GENERATIONS as usize;
        let words = |name, len| {
            Words::map(programs.array(name)?, len).map_err(KernelError::system("mmap of a BPF map"))
        };
        Ok(Self {
            layout,
            cpus,
            slots: words("SLOTS", tables * layout.slots as usize * SLOT_WORDS)?,
            frames: words("FRAMES", tables * layout.frames as usize)?,
            frames_used: words("FRAMES_USED", tables)?,
            tally: words("TALLY", (cpus * tally::WORDS_PER_CPU) as usize)?,
            state: words("STATE", state::WORDS as usize)?,
            counters,
            increases: words(
                "INCREASES",
                programs::increases(tables as u32 * layout.slots, counters) as usize,
            )?,
            residuals: words("RESIDUALS", (cpus * counters::RESIDUALS_PER_CPU) as usize)?,
            generation: 0,
        })
    }

    /// Lets the programs write the other tables. One that runs may still write those that are left.
    ///
    /// All that was sampled before the call lies in the tables that [`Self::drain`] then reads.
    pub(super) fn switch(&mut self) {
        self.generation ^= 1;
        self.state.store(state::GENERATION as usize, u64::from(self.generation));
    }

    /// Reads and empties the tables that were left at the last switch. The caller has [waited](wait_for_running_programs) since.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&RawSample<'_>)) {
        for cpu in 0..self.cpus {
            let table = TableLayout::table(cpu, self.generation ^ 1);
            if self.frames_used.load(table as usize) == 0 && self.is_untouched(table) {
                continue;
            }
            for slot in 0..self.layout.slots {
                let slot = self.layout.first_slot(table) + slot;
                let at = slot as usize * SLOT_WORDS;
                if self.slots.load(at) != 0 {
                    self.deliver(slot, &mut each);
                    self.slots.store(at, 0);
                }
            }
            self.frames_used.store(table as usize, 0);
        }
    }

    /// Samples and weight of an event with this fate so far, on all CPUs.
    pub(super) fn tally(&self, event: u32, fate: Fate) -> (u64, u64) {
        (0..self.cpus).fold((0, 0), |(samples, weight), cpu| {
            let at = tally::index(cpu, event, fate) as usize;
            (samples + self.tally.load(at), weight + self.tally.load(at + 1))
        })
    }

    /// What a counter counted outside of samples so far, on all CPUs.
    pub(super) fn residual(&self, whose: Whose, counter: u32) -> u64 {
        (0..self.cpus).map(|cpu| self.residuals.load(residual_index(cpu, whose, counter) as usize)).sum()
    }

    /// Processes or threads that could not be followed so far.
    pub(super) fn not_followed(&self) -> u64 {
        (0..self.cpus).map(|cpu| self.tally.load(tally::not_followed_index(cpu) as usize)).sum()
    }

    fn slot(&self, at: usize) -> SampleSlot {
        let words: [u64; SLOT_WORDS] = std::array::from_fn(|word| self.slots.load(at + word));
        // SAFETY: both have the same size, and every bit pattern is a valid slot.
        unsafe { std::mem::transmute::<[u64; SLOT_WORDS], SampleSlot>(words) }
    }

    /// Stacks without any frame use no frames, so an empty frame store alone does not tell.
    fn is_untouched(&self, table: u32) -> bool {
        let first = self.layout.first_slot(table) as usize;
        (first..first + self.layout.slots as usize).all(|slot| self.slots.load(slot * SLOT_WORDS) == 0)
    }

    fn deliver(&self, index: u32, each: &mut impl FnMut(&RawSample<'_>)) {
        let slot = self.slot(index as usize * SLOT_WORDS);
        let increases: Vec<Amount> = (0..self.counters)
            .map(|counter| {
                let at = increase_index(index, counter) as usize;
                Amount { samples: self.increases.load(at + 1), weight: self.increases.load(at) }
            })
            .collect();
        let (user_frames, kernel_frames) = (usize::from(slot.user_frames), usize::from(slot.kernel_frames));
        let first = slot.frames_at as usize;
        let user: Vec<UserFrame> =
            (first..first + user_frames).map(|at| UserFrame::decode(self.frames.load(at))).collect();
        let kernel: Vec<KernelAddress> = (first + user_frames..first + user_frames + kernel_frames)
            .map(|at| KernelAddress(self.frames.load(at)))
            .collect();
        let comm_len = slot.comm.iter().position(|&byte| byte == 0).unwrap_or(slot.comm.len());
        let (end, guess) = StackEnd::and_guess(slot.end).unwrap_or((StackEnd::Unreadable, Guess::None));
        each(&RawSample {
            tgid: Tgid(slot.tgid),
            tid: Tid(slot.tid),
            comm: &slot.comm[..comm_len],
            event: slot.event,
            first: MonotonicTime(slot.first_ns),
            samples: slot.samples,
            weight: slot.weight,
            increases: &increases,
            end,
            guess,
            user_mode: slot.user_mode != 0,
            user: &user,
            kernel: &kernel,
        });
    }
}

const SLOT_WORDS: usize = size_of::<SampleSlot>() / 8;

/// Returns when every BPF program that was running at the call has ended.
///
/// Programs run inside RCU read-side sections, and this command waits for all of those (`membarrier(2)`). It takes 10 ms and more.
pub fn wait_for_running_programs() {
    // SAFETY: the command takes no memory.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Refused on kernels booted with nohz_full. A program runs for microseconds.
        thread::sleep(Duration::from_millis(20));
    }
}
