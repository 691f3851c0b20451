//! From an overflow to a counted sample.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext,
    bindings::bpf_perf_event_value,
    helpers::generated::{
        bpf_get_attach_cookie, bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_task_btf,
        bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_perf_prog_read_value,
    },
    programs::PerfEventContext,
};
use profiler_common::{
    counters::Whose,
    limits::{MAX_EVENTS, MAX_PROBES},
    sample::{SampleSlot, TableLayout, period_index},
    tally::{Fate, state},
};

use crate::{
    arch::Arch,
    config::config,
    counters::{self, Increases},
    filter,
    ids::{self, Ids},
    kernel_memory,
    maps::{OWN_COUNT, PERIODS, SLOTS, STATE},
    stacks::{self, Stacks},
    tally,
};

/// The task that was interrupted.
pub(crate) struct Task {
    /// Its `struct task_struct`.
    pub pointer: *mut c_void,
    /// Thread group id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name as two words.
    pub comm: [u64; 2],
    /// Number of program images it has run, low half.
    pub exec_id: u32,
}

/// Takes one sample and counts what became of it. The result tells perf to write no record of its own.
#[inline(always)]
pub(crate) fn sample<A: Arch>(ctx: &PerfEventContext) -> u32 {
    // SAFETY: the helper takes nothing.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // SAFETY: the context is the program's own.
    let event = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) } as u32 & (MAX_EVENTS - 1);
    let weight = weight::<A>(ctx, cpu, event);
    tally::count(cpu, event, take::<A>(ctx, cpu, event, weight), weight);
    0
}

/// How much of the event a sample stands for: the period that has ended.
///
/// Where the kernel adapts the period of an event that it counts itself, it has set the next one before it shows it
/// (`perf_swevent_set_period` in `kernel/events/core.c`). The first of all is 1.
#[inline(always)]
fn weight<A: Arch>(ctx: &PerfEventContext, cpu: u32, event: u32) -> u64 {
    let shown = A::sample_period(ctx.as_ptr() as *const u8);
    let is_late = config!(late_periods) >> event & 1 != 0;
    let is_counted = config!(counted_weights) >> event & 1 != 0;
    if !is_late && !is_counted {
        return shown;
    }
    let Some(last) = PERIODS.get_ptr_mut(period_index(cpu, event)) else {
        return shown;
    };
    // SAFETY: the word belongs to this CPU, and sample programs do not nest on a CPU.
    let last = unsafe { &mut *last };
    if is_late { core::mem::replace(last, shown).max(1) } else { increase(ctx, last, shown) }
}

/// What the event has counted since the last sample.
///
/// After a gap, for which the CPU took no interrupt, it is the period: no single function is to blame for the rest.
#[inline(always)]
fn increase(ctx: &PerfEventContext, last: &mut u64, period: u64) -> u64 {
    let Some(count) = OWN_COUNT.get_ptr_mut(0) else { return period };
    let size = size_of::<bpf_perf_event_value>() as u32;
    // SAFETY: the context is the program's own, and the value has the given size.
    if unsafe { bpf_perf_prog_read_value(ctx.as_ptr().cast(), count, size) } != 0 {
        return period;
    }
    // SAFETY: the value belongs to this CPU, and sample programs do not nest on a CPU.
    let count = unsafe { (*count).counter };
    let increase = count.wrapping_sub(core::mem::replace(last, count));
    if increase < GAP_PERIODS * period { increase } else { period }
}

/// So many periods without a sample are a gap. Where the period changes, the one that has begun is added to the next.
const GAP_PERIODS: u64 = 3;

#[inline(always)]
fn take<A: Arch>(ctx: &PerfEventContext, cpu: u32, event: u32, weight: u64) -> Fate {
    if config!(idle) == 0 && is_idle() {
        return Fate::Idle;
    }
    let mut task = current_task();
    if !filter::is_target(&task) {
        return Fate::NotTarget;
    }
    task.exec_id = kernel_memory::read_u64(task.pointer as u64, config!(offsets.self_exec_id)) as u32;
    // Before anything that counts itself.
    let increases = counters::read(cpu);
    let fate = keep::<A>(ctx, &task, cpu, &Measured { event, weight, increases });
    if !matches!(fate, Fate::Kept) {
        counters::book_residual(cpu, Whose::Targets, &increases);
    }
    fate
}

/// What a sample stands for.
struct Measured {
    event: u32,
    weight: u64,
    increases: Increases,
}

/// Puts a sample of a target into the table, with its stacks.
#[inline(always)]
fn keep<A: Arch>(ctx: &PerfEventContext, task: &Task, cpu: u32, measured: &Measured) -> Fate {
    let user_mode = A::user_mode(ctx.as_ptr() as *const u8);
    if user_mode && config!(kernel_mode_only) != 0 {
        return Fate::UserModeLeftOut;
    }
    let Some(generation) = STATE.get(state::GENERATION) else {
        return Fate::NoScratch;
    };
    // Userspace changes the generation at any moment; one sample must stay with one.
    // SAFETY: a map value is readable.
    let generation = unsafe { core::ptr::read_volatile(generation) } as u32 & 1;
    let table = TableLayout::table(cpu, generation);
    match stacks::collect::<A>(ctx, task, user_mode, table) {
        Ok(stacks) => store(task, user_mode, table, &stacks, measured),
        Err(fate) => fate,
    }
}

#[inline(always)]
pub(crate) fn current_task() -> Task {
    let Ids { tgid, tid } = ids::current();
    // SAFETY: the helper takes nothing.
    let pointer = unsafe { bpf_get_current_task_btf() }.cast();
    let mut comm = [0u64; 2];
    // SAFETY: the destination is a local of the given size.
    unsafe { bpf_get_current_comm((&raw mut comm).cast(), 16) };
    Task { pointer, tgid, tid, comm, exec_id: 0 }
}

/// Whether the current task is the one that runs where no other wants to.
#[inline(always)]
pub(crate) fn is_idle() -> bool {
    // SAFETY: the helper takes nothing.
    let id = unsafe { bpf_get_current_pid_tgid() };
    id as u32 == 0
}

#[inline(always)]
fn store(task: &Task, user_mode: bool, table: u32, stacks: &Stacks, measured: &Measured) -> Fate {
    let Measured { event, weight, ref increases } = *measured;
    let mark = u64::from(task.exec_id)
        | u64::from(event) << 32
        | u64::from(stacks.end) << 48
        | u64::from(user_mode) << 56;
    let hash = stacks
        .hash
        .add(u64::from(task.tgid) << 32 | u64::from(task.tid))
        .add(mark)
        .add(task.comm[0])
        .add(task.comm[1])
        .add(u64::from(stacks.user_frames) << 32 | u64::from(stacks.kernel_frames))
        .finish();
    let slots = config!(tables.slots);
    let first = table * slots;
    for probe in 0..MAX_PROBES {
        let at = (hash as u32).wrapping_add(probe) & slots.wrapping_sub(1);
        let Some(slot) = SLOTS.get_ptr_mut(first + at) else {
            return Fate::NoScratch;
        };
        // SAFETY: the slot belongs to this CPU, and sample programs do not nest on a CPU.
        let slot: &mut SampleSlot = unsafe { &mut *slot };
        if slot.hash == hash {
            slot.samples += 1;
            slot.weight += weight;
            counters::add(first + at, increases, false);
            return Fate::Kept;
        }
        if slot.hash == 0 {
            // SAFETY: the helper takes nothing.
            slot.first_ns = unsafe { bpf_ktime_get_ns() };
            slot.samples = 1;
            slot.weight = weight;
            slot.tgid = task.tgid;
            slot.tid = task.tid;
            slot.exec_id = task.exec_id;
            slot.event = event as u16;
            slot.end = stacks.end;
            slot.user_mode = u8::from(user_mode);
            // SAFETY: both are 16 bytes, and any bytes are a name.
            slot.comm = unsafe { core::mem::transmute::<[u64; 2], [u8; 16]>(task.comm) };
            slot.frames_at = stacks.at;
            slot.user_frames = stacks.user_frames as u16;
            slot.kernel_frames = stacks.kernel_frames as u16;
            slot.hash = hash;
            counters::add(first + at, increases, true);
            stacks::keep(table, stacks);
            return Fate::Kept;
        }
    }
    Fate::TableFull
}
