//! What each slice of time added, for intervals that hold in other runs.

use super::model::{EventId, Profile};

/// Weight of all samples of the main event, by slice.
pub(super) fn whole(profile: &Profile) -> Vec<f64> {
    let mut whole = vec![0.0; profile.header.slices.count as usize];
    for sample in profile.samples_of(EventId::MAIN) {
        if let Some(sum) = whole.get_mut(sample.slice as usize) {
            *sum += sample.weight as f64;
        }
    }
    whole
}

/// Weight of some samples, by event and slice; `samples` are indices in the profile.
pub(super) fn by_event(profile: &Profile, samples: &[u32]) -> Vec<Vec<f64>> {
    let (events, slices) = (profile.header.counters.len() + 1, profile.header.slices.count as usize);
    let mut sums = vec![vec![0.0; slices]; events];
    for sample in samples.iter().filter_map(|&index| profile.samples.get(index as usize)) {
        let slice =
            sums.get_mut(usize::from(sample.event.0)).and_then(|of| of.get_mut(sample.slice as usize));
        if let Some(sum) = slice {
            *sum += sample.weight as f64;
        }
    }
    sums
}
