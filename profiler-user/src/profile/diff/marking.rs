//! Which functions changed.
//!
//! Shares add up to 1: where one function grows, all others shrink, and a test of each share alone would mark them all. So functions that changed are
//! set aside one by one, each time the one that leaves the others most alike, until the rest is alike in both runs. What is marked is the
//! smallest set of changes that explains the difference.

use super::{SIGNIFICANT, Scale};
use crate::profile::statistics::{Difference, Repeat, Slice, difference, holm, repeat};

/// Functions that are tried for being set aside: those that differ most.
const TRIED: usize = 16;

/// Functions by which it is judged how alike the others are left: those with the most samples.
const JUDGES: usize = 128;

/// Functions that are set aside at most: with more changes than these the runs have little in common.
const MOST_SET_ASIDE: usize = 64;

/// A function that is compared: what each slice added to it, before and after.
pub(super) struct Candidate([Vec<f64>; 2]);

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marking {
    /// Corrected for the number of comparisons; `None` where a run is too short to say.
    pub(super) p: Option<f64>,
    /// The same before the correction.
    pub(super) raw_p: Option<f64>,
    /// Whether it costs more.
    pub(super) grew: bool,
}

impl Candidate {
    pub(super) fn new(before_and_after: [Vec<f64>; 2]) -> Self {
        Self(before_and_after)
    }

    /// After less before: of the shares, or of the costs over runs of these lengths.
    pub(super) fn difference(
        &self,
        wholes: &[Vec<f64>; 2],
        scale: Scale,
        seconds: [f64; 2],
    ) -> Option<Difference> {
        let [before, after] = self.repeats(wholes)?;
        Some(match scale {
            Scale::Normalised => difference(&before, &after),
            Scale::Absolute => difference(&before.scaled(seconds[0]), &after.scaled(seconds[1])),
        })
    }

    fn repeats(&self, wholes: &[Vec<f64>; 2]) -> Option<[Repeat; 2]> {
        let one = |side: usize| repeat(&slices(&self.0[side], &wholes[side])).ok();
        Some([one(0)?, one(1)?])
    }

    fn take_from(&self, wholes: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
        [0, 1].map(|side| {
            let pairs = wholes[side].iter().zip(&self.0[side]);
            pairs.map(|(whole, part)| (whole - part).max(0.0)).collect()
        })
    }
}

fn slices(parts: &[f64], whole: &[f64]) -> Vec<Slice> {
    parts.iter().zip(whole).map(|(&amount, &base)| Slice { amount, base }).collect()
}

/// How far a difference is from nothing, in half widths of its interval.
fn excess(difference: &Difference) -> f64 {
    let half = (difference.high - difference.low) / 2.0;
    if difference.value == 0.0 { 0.0 } else { difference.value.abs() / half }
}

/// Marks each candidate that differs when it is set against `base`. `others` are the p values of other comparisons that are made at the same
/// time.
pub(super) fn mark_against(
    candidates: &[Candidate],
    base: &[Vec<f64>; 2],
    scale: Scale,
    others: &[f64],
) -> Vec<Marking> {
    let lengths = match scale {
        Scale::Normalised => [1.0, 1.0],
        Scale::Absolute => [0, 1].map(|side| base[side].iter().sum::<f64>()),
    };
    let differences: Vec<Option<Difference>> =
        candidates.iter().map(|candidate| candidate.difference(base, scale, lengths)).collect();
    let mut ps: Vec<f64> = differences.iter().flatten().map(|difference| difference.p).collect();
    ps.extend(others);
    let mut corrected = holm(&ps).into_iter();
    let mark = |difference: Option<Difference>| {
        difference.map_or_else(Marking::default, |difference| Marking {
            p: corrected.next(),
            raw_p: Some(difference.p),
            grew: difference.value > 0.0,
        })
    };
    differences.into_iter().map(mark).collect()
}

/// Marks candidates, which are in the order of their samples, and adds up what did not change. `others` are the p values of other comparisons
/// that are made at the same time.
pub(super) fn mark(
    candidates: &[Candidate],
    wholes: &[Vec<f64>; 2],
    scale: Scale,
    others: &[f64],
) -> (Vec<Marking>, [Vec<f64>; 2]) {
    let lengths = [0, 1].map(|side| wholes[side].iter().sum::<f64>());
    let mut marks = vec![Marking::default(); candidates.len()];
    let mut rest: Vec<usize> = (0..candidates.len()).collect();
    let mut wholes = wholes.clone();
    let compare = |candidate: usize, wholes: &[Vec<f64>; 2]| -> Option<Difference> {
        let lengths = if scale == Scale::Absolute { lengths } else { [1.0, 1.0] };
        candidates[candidate].difference(wholes, scale, lengths)
    };
    let mut set_aside = 0;
    loop {
        let differences: Vec<Option<Difference>> =
            rest.iter().map(|&index| compare(index, &wholes)).collect();
        // What cannot be told of must not move the shares of the others either.
        let untold: Vec<usize> = rest
            .iter()
            .zip(&differences)
            .filter(|(_, difference)| difference.is_none())
            .map(|(&index, _)| index)
            .collect();
        if scale == Scale::Normalised && !untold.is_empty() {
            let told = |without: Option<usize>, wholes: &[Vec<f64>; 2]| {
                let judges = rest.iter().filter(|&&judge| Some(judge) != without).take(JUDGES);
                judges.filter(|&&judge| compare(judge, wholes).is_some()).count()
            };
            // One function in phases moves the shares of all, so the one that hides most of the others goes first.
            let hides = untold.iter().take(TRIED).map(|&index| {
                let wholes = candidates[index].take_from(&wholes);
                (told(Some(index), &wholes), index)
            });
            let best = hides.max_by_key(|&(told, index)| (told, std::cmp::Reverse(index)));
            let leaving = match best {
                Some((more, index)) if more > told(None, &wholes) => vec![index],
                _ if untold.len() < rest.len() => untold,
                _ => return (marks, wholes),
            };
            for index in leaving {
                marks[index] = Marking::default();
                wholes = candidates[index].take_from(&wholes);
                rest.retain(|&other| other != index);
            }
            continue;
        }
        let mut ps: Vec<f64> = differences.iter().flatten().map(|difference| difference.p).collect();
        ps.extend(others);
        // Those that are set aside were compared too.
        ps.extend(std::iter::repeat_n(0.0, set_aside));
        let mut corrected = holm(&ps).into_iter();
        let mut significant = Vec::new();
        for (&index, difference) in rest.iter().zip(&differences) {
            let Some(difference) = difference else {
                marks[index] = Marking::default();
                continue;
            };
            let p = corrected.next();
            marks[index] = Marking { p, raw_p: Some(difference.p), grew: difference.value > 0.0 };
            if p.is_some_and(|p| p < SIGNIFICANT) {
                significant.push((index, excess(difference)));
            }
        }
        if scale == Scale::Absolute || significant.is_empty() || set_aside >= MOST_SET_ASIDE {
            return (marks, wholes);
        }
        significant.sort_by(|a, b| b.1.total_cmp(&a.1));
        significant.truncate(TRIED);
        // How unlike the others are left without each.
        let left = significant.iter().map(|&(index, _)| {
            let wholes = candidates[index].take_from(&wholes);
            let judges = rest.iter().filter(|&&judge| judge != index).take(JUDGES);
            let unlike = judges.filter_map(|&judge| compare(judge, &wholes)).map(|other| excess(&other));
            (index, unlike.fold(0.0, f64::max))
        });
        // Of two that explain the same, the one that grew: the other was not necessarily touched, and a loss is worse to miss than a gain.
        let best = left.min_by(|a, b| {
            let alike = (a.1 - b.1).abs() <= 1e-9 * a.1.max(b.1);
            let by_growth = marks[b.0].grew.cmp(&marks[a.0].grew);
            if alike { by_growth } else { a.1.total_cmp(&b.1) }
        });
        let Some((index, _)) = best else { return (marks, wholes) };
        set_aside += 1;
        wholes = candidates[index].take_from(&wholes);
        rest.retain(|&other| other != index);
    }
}
