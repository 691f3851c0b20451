//! A profile in the making, with what keeps a hostile file from growing without bounds.

use super::SavedError;
use crate::kernel::Amount;
use crate::profile::{EventId, FrameId, Header, Profile, Sample, StackId};

/// Frames of all stacks together: a small file can name a long stack in every sample.
const MOST_FRAMES: usize = 1 << 28;

/// Events of a profile, the main one included.
pub(super) const MOST_EVENTS: usize = 64;

/// A profile in the making.
pub(super) struct Builder {
    /// Functions, frames and the like are added here.
    pub(super) profile: Profile,
    frames: usize,
    totals: Vec<Amount>,
}

impl Builder {
    /// For so many events.
    pub(super) fn new(events: usize) -> Self {
        Self { profile: Profile::default(), frames: 0, totals: vec![Amount::default(); events] }
    }

    /// Another event.
    pub(super) fn add_event(&mut self) {
        self.totals.push(Amount::default());
    }

    /// Adds a stack, outermost frame first, or finds it.
    pub(super) fn add_stack(&mut self, frames: Vec<FrameId>) -> Result<StackId, SavedError> {
        self.frames += frames.len();
        if self.frames > MOST_FRAMES {
            return Err(SavedError::TooLarge);
        }
        Ok(self.profile.add_stack(frames))
    }

    /// Adds a sample.
    pub(super) fn add_sample(&mut self, sample: Sample) -> Result<(), SavedError> {
        const OVERFLOW: SavedError = SavedError::Damaged("its numbers add up to more than can be");
        let Some(total) = self.totals.get_mut(usize::from(sample.event.0)) else {
            return Err(SavedError::Damaged("a sample is of an event that is not there"));
        };
        // Half of what fits: sums of shares of two profiles must fit as well.
        let sum = |a: u64, b: u64| a.checked_add(b).filter(|&sum| sum <= u64::MAX / 2).ok_or(OVERFLOW);
        total.samples = sum(total.samples, sample.samples)?;
        total.weight = sum(total.weight, sample.weight)?;
        self.profile.samples.push(sample);
        Ok(())
    }

    /// The profile under a header, whose totals are those of the samples.
    ///
    /// The answer's second part says whether the header had others.
    pub(super) fn finish(mut self, mut header: Header) -> Result<(Profile, bool), SavedError> {
        if self.totals.iter().all(|total| total.samples == 0 && total.weight == 0) {
            return Err(SavedError::Empty);
        }
        let mut changed = false;
        let ids = (0..).map(EventId);
        for (id, total) in ids.zip(&self.totals) {
            let counter = usize::from(id.0).checked_sub(1);
            let info = match counter {
                None => &mut header.event,
                Some(counter) => &mut header.counters[counter],
            };
            changed |= (info.samples, info.weight) != (total.samples, total.weight);
            (info.samples, info.weight) = (total.samples, total.weight);
        }
        (header.samples, header.weight) = (self.totals[0].samples, self.totals[0].weight);
        self.profile.header = header;
        Ok((self.profile, changed))
    }
}
