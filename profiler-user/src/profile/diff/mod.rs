//! Two profiles of one program: what changed from one to the other, and whether runs of the same program would differ as much.

mod marking;
mod names;
mod side;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::header::EventInfo;
use super::metrics::Metric;
use super::model::Profile;
use super::statistics::{Difference, Repeat, Slice, TooShort, difference, holm, repeat};
use super::sum::Sum;
use marking::{Candidate, mark};
pub use names::comparable;
use side::Side;

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Shares: the runs may have been of different length.
    #[default]
    Normalised,
    /// What the functions cost over the whole run: both runs did the same work.
    Absolute,
}

/// The functions of two profiles side by side.
#[derive(Debug)]
pub struct Diff {
    /// What is compared.
    pub scale: Scale,
    /// All functions: marked ones first, then by how far they moved.
    pub rows: Vec<Row>,
    /// Metrics that both profiles have the events for.
    pub metrics: Vec<&'static Metric>,
    /// Comparisons that were made; the more, the more each must differ to be marked.
    pub comparisons: usize,
    /// Why nothing could be marked.
    pub too_short: Option<TooShort>,
    /// Functions with enough samples that vary too slowly, or in too few slices of time, to tell whether they changed.
    pub untold: usize,
}

/// One function.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: Arc<str>,
    /// The object it lies in; in that of the later profile, if it is in both.
    pub object: Arc<str>,
    /// What it cost before.
    pub before: Cost,
    /// What it cost after.
    pub after: Cost,
    /// After less before, of the function itself, with the repeat interval; `None` where there are too few samples or slices to tell. Its `p` is
    /// not corrected.
    pub difference: Option<Difference>,
    /// How often any comparison at all would come out as this one if nothing changed; below [`SIGNIFICANT`] the function is marked.
    pub p: Option<f64>,
    /// What it costs after, in multiples of before. With shares it is set against the functions that are not marked: where one grows, the shares of
    /// all others shrink. `None` where there was nothing before.
    pub change: Option<f64>,
    /// Which way it changed, if that is significant.
    pub mark: Option<Mark>,
    /// Its metrics, in the order of [`Diff::metrics`].
    pub metrics: Vec<MetricChange>,
}

/// What a function costs in one profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Itself.
    pub own: Sum,
    /// With all it calls.
    pub total: Sum,
    /// Share of itself.
    pub own_share: f64,
    /// Share with all it calls.
    pub total_share: f64,
}

/// A significant change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It costs more.
    Slower,
    /// It costs less.
    Faster,
}

/// A metric of a function.
#[derive(Clone, Copy, Debug)]
pub struct MetricChange {
    /// Before, with its repeat interval.
    pub before: Option<Repeat>,
    /// After.
    pub after: Option<Repeat>,
    /// After less before.
    pub difference: Option<Difference>,
    /// Whether it is significant.
    pub is_marked: bool,
}

/// Profiles that cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Of different events.
    #[error(
        "the first profile is of {before} and the second of {after}: their numbers cannot be compared; record both with the same --event"
    )]
    Events {
        /// The first's event.
        before: String,
        /// The second's.
        after: String,
    },
}

/// Chance that anything is marked where nothing changed.
pub const SIGNIFICANT: f64 = 0.05;

/// Functions with fewer samples in both profiles together are not compared: no change of theirs could be told.
const FEWEST_SAMPLES: u64 = 10;

/// Most functions that are compared, those with the most samples.
const MOST_COMPARED: usize = 4096;

impl Diff {
    /// Compares two profiles whose functions have [`comparable`] names.
    ///
    /// # Errors
    ///
    /// When they are of different events.
    pub fn new(before: &Profile, after: &Profile, scale: Scale) -> Result<Self, DiffError> {
        check_events(&before.header.event, &after.header.event)?;
        let (before, after) = (Side::new(before), Side::new(after));
        let names: BTreeSet<&Arc<str>> = before.functions.keys().chain(after.functions.keys()).collect();
        let names: Vec<&Arc<str>> = names.into_iter().collect();
        let metrics: Vec<&Metric> =
            before.metrics().into_iter().filter(|metric| after.metrics().contains(metric)).collect();
        let compared = compared(&names, &before, &after);
        let candidates: Vec<Candidate> = compared
            .iter()
            .map(|&name| Candidate::new(before.slices_of(names[name]), after.slices_of(names[name])))
            .collect();
        let wholes = [&before, &after].map(|side| side.whole_slices(scale));
        let too_short = wholes.iter().find_map(|whole| whole_varies(whole).err());

        let mut changes: Vec<Vec<MetricChange>> = Vec::new();
        changes.resize_with(names.len(), Vec::new);
        for &name in &compared {
            changes[name] =
                metrics.iter().map(|metric| metric_change(metric, names[name], &before, &after)).collect();
        }
        let metric_ps: Vec<f64> = changes
            .iter()
            .flatten()
            .filter_map(|change| change.difference.map(|difference| difference.p))
            .collect();
        let marks = mark(&candidates, &wholes, scale, &metric_ps);
        // One family with the shares: a gate must not fail by chance, whatever is in it.
        let mut ps = metric_ps.clone();
        ps.extend(marks.iter().filter_map(|mark| mark.p));
        let corrected = holm(&ps);
        let mut corrected = corrected.into_iter();
        for change in changes.iter_mut().flatten().filter(|change| change.difference.is_some()) {
            change.is_marked = corrected.next().is_some_and(|p| p < SIGNIFICANT);
        }

        let mut rows: Vec<Row> = names
            .iter()
            .zip(changes)
            .map(|(name, metrics)| {
                let object = after.functions.get(*name).or_else(|| before.functions.get(*name));
                Row {
                    name: Arc::clone(name),
                    object: object.map_or_else(|| "".into(), |function| Arc::clone(&function.object)),
                    before: before.cost(name),
                    after: after.cost(name),
                    difference: None,
                    p: None,
                    change: None,
                    mark: None,
                    metrics,
                }
            })
            .collect();
        for ((&name, mark), candidate) in compared.iter().zip(&marks).zip(&candidates) {
            rows[name].p = mark.p;
            rows[name].difference = candidate.difference(&wholes, scale, [before.seconds, after.seconds]);
            let is_significant = mark.p.is_some_and(|p| p < SIGNIFICANT);
            rows[name].mark = is_significant.then_some(if mark.grew { Mark::Slower } else { Mark::Faster });
        }
        set_changes(&mut rows, scale);
        sort(&mut rows);
        let told = marks.iter().filter(|mark| mark.p.is_some()).count();
        let (comparisons, untold) = (told + metric_ps.len(), marks.len() - told);
        Ok(Self { scale, rows, metrics, comparisons, too_short, untold })
    }

    /// The marked function that costs more by the largest part of what it cost, and that part: 0.2 for a fifth. A function that was not there
    /// before costs infinitely more.
    #[must_use]
    pub fn worst(&self) -> Option<(&Row, f64)> {
        let slower = self.rows.iter().filter(|row| row.mark == Some(Mark::Slower));
        let growth = slower.map(|row| (row, row.change.map_or(f64::INFINITY, |change| change - 1.0)));
        growth.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Other programs name CPU time in their own ways.
fn check_events(before: &EventInfo, after: &EventInfo) -> Result<(), DiffError> {
    let is_time = |event: &EventInfo| event.unit == "ns";
    if before.name == after.name || (is_time(before) && is_time(after)) {
        return Ok(());
    }
    Err(DiffError::Events { before: before.name.clone(), after: after.name.clone() })
}

/// The functions, by index, with enough samples to be compared.
fn compared(names: &[&Arc<str>], before: &Side<'_>, after: &Side<'_>) -> Vec<usize> {
    let samples = |name: &Arc<str>| {
        let samples =
            |side: &Side<'_>| side.functions.get(name).map_or(0, |function| function.own[0].samples);
        samples(before) + samples(after)
    };
    let mut compared: Vec<usize> =
        (0..names.len()).filter(|&name| samples(names[name]) >= FEWEST_SAMPLES).collect();
    compared.sort_by_key(|&name| std::cmp::Reverse(samples(names[name])));
    compared.truncate(MOST_COMPARED);
    compared
}

/// Whether a run has enough slices to tell of other runs at all.
fn whole_varies(whole: &[f64]) -> Result<Repeat, TooShort> {
    let slices: Vec<Slice> = whole.iter().map(|&base| Slice { amount: base, base }).collect();
    repeat(&slices)
}

fn metric_change(metric: &Metric, name: &Arc<str>, before: &Side<'_>, after: &Side<'_>) -> MetricChange {
    let [before, after] = [before, after].map(|side| side.metric(metric, name));
    let difference = before.as_ref().zip(after.as_ref()).map(|(before, after)| difference(before, after));
    MetricChange { before, after, difference, is_marked: false }
}

/// Sets what each function costs in multiples of before.
fn set_changes(rows: &mut [Row], scale: Scale) {
    let rest = |cost: fn(&Row) -> u64| -> f64 {
        let rest = rows.iter().filter(|row| scale == Scale::Normalised && row.mark.is_none());
        rest.map(|row| cost(row) as f64).sum()
    };
    let (before, after) = (rest(|row| row.before.own.weight), rest(|row| row.after.own.weight));
    let factor = if before > 0.0 && after > 0.0 { before / after } else { 1.0 };
    for row in rows {
        let (before, after) = (row.before.own.weight as f64, row.after.own.weight as f64);
        row.change = (before > 0.0).then(|| after / before * factor);
    }
}

fn sort(rows: &mut [Row]) {
    let moved = |row: &Row| (row.after.own_share - row.before.own_share).abs();
    rows.sort_by(|a, b| {
        let marked = b.mark.is_some().cmp(&a.mark.is_some());
        marked.then_with(|| moved(b).total_cmp(&moved(a))).then_with(|| a.name.cmp(&b.name))
    });
}

#[cfg(test)]
mod tests;
