//! Samples in the order of time, as far as slices tell it.

use crate::profile::{EventId, Profile, Sample};

/// Samples of an event by slice of time. Within a slice those of a task are together, and equal stacks are neighbours, since their true
/// order is not known.
pub(super) fn samples(profile: &Profile, event: EventId) -> Vec<&Sample> {
    let mut samples: Vec<_> = profile.samples_of(event).collect();
    samples.sort_unstable_by_key(|sample| (sample.slice, sample.task, sample.stack));
    samples
}
