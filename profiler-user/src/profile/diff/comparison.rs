//! One kind of cost of all functions, compared.

use std::sync::Arc;

use super::marking::{Candidate, Marking, mark, mark_against};
use super::side::Side;
use super::{Mark, SIGNIFICANT, Scale};

/// What came of comparing functions.
pub(super) struct Comparison {
    /// The functions, by index.
    pub(super) names: Vec<usize>,
    /// What each slice of time added to them.
    pub(super) candidates: Vec<Candidate>,
    pub(super) marks: Vec<Marking>,
    /// What each slice of time added to the functions that did not change.
    unchanged: [Vec<f64>; 2],
}

impl Comparison {
    /// Compares what functions take themselves. `others` are the p values of other comparisons that are made at the same time.
    pub(super) fn of_selves(
        compared: &[usize],
        names: &[&Arc<str>],
        sides: [&Side<'_>; 2],
        wholes: &[Vec<f64>; 2],
        scale: Scale,
        others: &[f64],
    ) -> Self {
        let candidate = |&name: &usize| Candidate::new(sides.map(|side| side.slices_of(names[name])));
        let candidates: Vec<Candidate> = compared.iter().map(candidate).collect();
        let (marks, unchanged) = mark(&candidates, wholes, scale, others);
        Self { names: compared.to_vec(), candidates, marks, unchanged }
    }

    /// Compares what functions take with all they call, set against the functions that did not change themselves. Totals are no parts of a
    /// whole: that of a caller grows with that of its callee, and both are marked.
    pub(super) fn of_totals(
        compared: &[usize],
        names: &[&Arc<str>],
        sides: [&Side<'_>; 2],
        selves: &Self,
        scale: Scale,
        others: &[f64],
    ) -> Self {
        let compared_names: Vec<&Arc<str>> = compared.iter().map(|&name| names[name]).collect();
        let [before, after] = sides.map(|side| side.total_slices(&compared_names));
        let candidates: Vec<Candidate> =
            before.into_iter().zip(after).map(|(before, after)| Candidate::new([before, after])).collect();
        let unchanged = selves.unchanged.clone();
        let marks = mark_against(&candidates, &unchanged, scale, others);
        Self { names: compared.to_vec(), candidates, marks, unchanged }
    }

    /// Functions that changed.
    pub(super) fn significant(&self) -> usize {
        self.marks.iter().filter(|mark| mark.significant().is_some()).count()
    }

    /// Whether any function changed.
    pub(super) fn any_significant(&self) -> bool {
        self.significant() > 0
    }
}

impl Marking {
    /// Which way a function changed, if it did.
    pub(super) fn significant(&self) -> Option<Mark> {
        let is_significant = self.p.is_some_and(|p| p < SIGNIFICANT);
        is_significant.then_some(if self.grew { Mark::Slower } else { Mark::Faster })
    }
}
