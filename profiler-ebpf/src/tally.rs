//! Counting the fate of samples.

use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use profiler_common::tally::{Fate, index, not_followed_index};

use crate::maps::TALLY;

/// Counts one delivery of an event of this weight on this CPU.
#[inline(always)]
pub(crate) fn count(cpu: u32, event: u32, fate: Fate, weight: u64) {
    let at = index(cpu, event, fate);
    add(at, 1);
    add(at + 1, weight);
}

/// Counts a task that should be followed and is not. Fork and exec do not nest on a CPU.
#[inline(always)]
pub(crate) fn count_not_followed() {
    // SAFETY: the helper takes nothing.
    add(not_followed_index(unsafe { bpf_get_smp_processor_id() }), 1);
}

#[inline(always)]
fn add(at: u32, by: u64) {
    if let Some(word) = TALLY.get_ptr_mut(at) {
        // SAFETY: the word belongs to this CPU and to one kind of program, which does not nest on a CPU.
        unsafe { *word += by };
    }
}
