//! What each slice of time added, for intervals that hold in other runs.

use super::model::{EventId, Profile};
use super::statistics::{Repeat, Slice, TooShort, repeat};

/// The slices of a profile.
#[derive(Debug)]
pub(super) struct Slicer {
    /// Weight of all samples, by event and slice.
    whole: Vec<Vec<f64>>,
}

impl Slicer {
    pub(super) fn new(profile: &Profile) -> Self {
        let all = 0..u32::try_from(profile.samples.len()).unwrap_or(u32::MAX);
        Self { whole: sums(profile, all) }
    }

    /// Weight of all samples of the main event, by slice.
    pub(super) fn whole(mut self) -> Vec<f64> {
        self.whole.swap_remove(0)
    }

    /// The share of some samples in an event; `samples` are indices in the profile.
    pub(super) fn share(
        &self,
        profile: &Profile,
        event: EventId,
        samples: &[u32],
    ) -> Result<Repeat, TooShort> {
        let part = by_event(profile, samples);
        let event = usize::from(event.0);
        let (Some(part), Some(whole)) = (part.get(event), self.whole.get(event)) else {
            return Err(TooShort::FewSlices);
        };
        let slices: Vec<Slice> =
            part.iter().zip(whole).map(|(&amount, &base)| Slice { amount, base }).collect();
        repeat(&slices)
    }
}

/// Weight of some samples, by event and slice; `samples` are indices in the profile.
pub(super) fn by_event(profile: &Profile, samples: &[u32]) -> Vec<Vec<f64>> {
    sums(profile, samples.iter().copied())
}

fn sums(profile: &Profile, samples: impl Iterator<Item = u32>) -> Vec<Vec<f64>> {
    let (events, slices) = (profile.header.counters.len() + 1, profile.header.slices.count as usize);
    let mut sums = vec![vec![0.0; slices]; events];
    for sample in samples.filter_map(|index| profile.samples.get(index as usize)) {
        let slice =
            sums.get_mut(usize::from(sample.event.0)).and_then(|of| of.get_mut(sample.slice as usize));
        if let Some(sum) = slice {
            *sum += sample.weight as f64;
        }
    }
    sums
}
