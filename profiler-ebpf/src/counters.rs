//! Counters that are read at samples (`delta` attribution).
//!
//! What a counter counted since its last reading belongs to the task that runs: the readings are renewed when the CPU switches to
//! another. What a target counted after its last sample is booked as residual, so that totals close.

use core::mem::MaybeUninit;

use aya_ebpf::{
    bindings::{BPF_F_CURRENT_CPU, bpf_perf_event_value},
    helpers::generated::{bpf_get_smp_processor_id, bpf_perf_event_read_value},
    maps::PerfEventArray,
};
use profiler_common::{
    counters::{Readings, Whose, increase_index, residual_index},
    limits::MAX_COUNTERS,
};

use crate::{
    config::config,
    filter,
    maps::{self, INCREASES, READINGS, RESIDUALS},
    sample::{current_task, is_idle},
};

/// What each counter counted since its last reading.
pub(crate) type Increases = [u64; MAX_COUNTERS as usize];

/// Reads the counters for a sample on this CPU.
#[inline(always)]
pub(crate) fn read(cpu: u32) -> Increases {
    let mut increases = [0; MAX_COUNTERS as usize];
    if config!(counters) != 0
        && let Some(readings) = READINGS.get_ptr_mut(cpu)
        && !is_switching(readings)
    {
        renew(readings, &mut increases);
    }
    increases
}

/// Adds the increases to a slot, or begins it with them.
#[inline(always)]
pub(crate) fn add(slot: u32, increases: &Increases, is_new: bool) {
    for counter in 0..MAX_COUNTERS {
        if counter >= config!(counters) {
            return;
        }
        let increase = increases[counter as usize];
        let at = increase_index(slot, counter);
        put(at, increase, is_new);
        put(at + 1, (increase != 0).into(), is_new);
    }
}

#[inline(always)]
fn put(at: u32, amount: u64, is_new: bool) {
    if let Some(word) = INCREASES.get_ptr_mut(at) {
        // SAFETY: the word belongs to this CPU, and sample programs do not nest on a CPU.
        let word = unsafe { &mut *word };
        *word = amount + if is_new { 0 } else { *word };
    }
}

/// Books increases that no sample takes.
#[inline(always)]
pub(crate) fn book_residual(cpu: u32, whose: Whose, increases: &Increases) {
    for counter in 0..MAX_COUNTERS {
        if counter >= config!(counters) {
            return;
        }
        if let Some(word) = RESIDUALS.get_ptr_mut(residual_index(cpu, whose, counter)) {
            // SAFETY: the word belongs to this CPU; a sample that interrupts a switch books nothing.
            unsafe { *word += increases[counter as usize] };
        }
    }
}

/// Books what the current task counted since the last reading: when the CPU switches to another task, and before an exit takes it off
/// the list of targets. Both run with preemption off.
#[inline(always)]
pub(crate) fn settle() {
    // SAFETY: the helper takes nothing.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(readings) = READINGS.get_ptr_mut(cpu) else {
        return;
    };
    let is_idle = config!(idle) == 0 && is_idle();
    let whose = if !is_idle && filter::is_target(&current_task()) { Whose::Targets } else { Whose::Others };
    let mut increases = [0; MAX_COUNTERS as usize];
    mark_switching(readings, 1);
    renew(readings, &mut increases);
    book_residual(cpu, whose, &increases);
    mark_switching(readings, 0);
}

/// Whether this sample interrupts the switch program.
#[inline(always)]
fn is_switching(readings: *mut Readings) -> bool {
    // SAFETY: the pointer is that of a map value.
    let mark = unsafe { &raw const (*readings).switching };
    // SAFETY: as above; the mark changes only on this CPU.
    unsafe { core::ptr::read_volatile(mark) != 0 }
}

#[inline(always)]
fn mark_switching(readings: *mut Readings, value: u64) {
    // SAFETY: the pointer is that of a map value.
    let mark = unsafe { &raw mut (*readings).switching };
    // SAFETY: the map value belongs to this CPU, and the switch program does not nest.
    unsafe { core::ptr::write_volatile(mark, value) };
}

/// Reads every counter and keeps what it says; a counter that cannot be read has not increased.
#[inline(always)]
fn renew(readings: *mut Readings, increases: &mut Increases) {
    // SAFETY: the map value belongs to this CPU, and of the programs that come here one marks the other off.
    let values = unsafe { &mut (*readings).values };
    let counters = config!(counters) as usize;
    // Each map by its name: the verifier wants to know which one a call reads.
    macro_rules! renew {
        ($($at:literal $map:ident)*) => {$(
            if $at < counters
                && let Some(value) = value(&maps::$map)
            {
                increases[$at] = value.wrapping_sub(values[$at]);
                values[$at] = value;
            }
        )*};
    }
    renew!(0 COUNTER_0 1 COUNTER_1 2 COUNTER_2 3 COUNTER_3 4 COUNTER_4 5 COUNTER_5 6 COUNTER_6 7 COUNTER_7);
}

/// What the event of this CPU in a map has counted.
#[inline(always)]
fn value(events: &PerfEventArray<u64>) -> Option<u64> {
    let mut value = MaybeUninit::<bpf_perf_event_value>::uninit();
    // SAFETY: the map is an array of perf events, and the destination a local of the given size.
    let result = unsafe {
        bpf_perf_event_read_value(
            (&raw const *events).cast_mut().cast(),
            BPF_F_CURRENT_CPU,
            value.as_mut_ptr(),
            size_of::<bpf_perf_event_value>() as u32,
        )
    };
    // SAFETY: the helper wrote all bytes.
    (result == 0).then(|| unsafe { value.assume_init() }.counter)
}
