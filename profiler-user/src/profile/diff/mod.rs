//! Two profiles of one program: what changed from one to the other, and whether runs of the same program would differ as much.

mod comparison;
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
use comparison::Comparison;
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

/// Which costs of functions are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Basis {
    /// What they take themselves.
    #[default]
    #[serde(rename = "self")]
    Own,
    /// What they take with all they call.
    #[serde(rename = "total")]
    Total,
}

/// The functions of two profiles side by side.
#[derive(Debug)]
pub struct Diff {
    /// What is compared.
    pub scale: Scale,
    /// Which costs are compared.
    pub basis: Basis,
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
    /// Functions whose total changed significantly, where no function changed itself.
    pub changed_totals: usize,
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
    /// After less before, of what is compared, with the repeat interval; `None` where there are too few samples or slices to tell. Its `p` is
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
    pub fn new(before: &Profile, after: &Profile, scale: Scale, basis: Basis) -> Result<Self, DiffError> {
        check_events(&before.header.event, &after.header.event)?;
        let (before, after) = (Side::new(before), Side::new(after));
        let names: BTreeSet<&Arc<str>> = before.functions.keys().chain(after.functions.keys()).collect();
        let names: Vec<&Arc<str>> = names.into_iter().collect();
        let metrics: Vec<&Metric> =
            before.metrics().into_iter().filter(|metric| after.metrics().contains(metric)).collect();
        let wholes = [&before, &after].map(|side| side.whole_slices(scale));
        let too_short = wholes.iter().find_map(|whole| whole_varies(whole).err());

        let own = compared(&names, |name| before.own_samples(name) + after.own_samples(name));
        let mut changes: Vec<Vec<MetricChange>> = Vec::new();
        changes.resize_with(names.len(), Vec::new);
        for &name in &own {
            changes[name] =
                metrics.iter().map(|metric| metric_change(metric, names[name], &before, &after)).collect();
        }
        let metric_ps: Vec<f64> = changes
            .iter()
            .flatten()
            .filter_map(|change| change.difference.map(|difference| difference.p))
            .collect();
        let own = Comparison::of_selves(&own, &names, [&before, &after], &wholes, scale, &metric_ps);
        // One family with the shares: a gate must not fail by chance, whatever is in it.
        let mut ps = metric_ps.clone();
        ps.extend(own.marks.iter().filter_map(|mark| mark.p));
        let mut corrected = holm(&ps).into_iter();
        for change in changes.iter_mut().flatten().filter(|change| change.difference.is_some()) {
            change.is_marked = corrected.next().is_some_and(|p| p < SIGNIFICANT);
        }

        let total = compared(&names, |name| before.total_samples(name) + after.total_samples(name));
        let mut others = metric_ps.clone();
        others.extend(own.marks.iter().filter_map(|mark| mark.raw_p));
        let total = Comparison::of_totals(&total, &names, [&before, &after], &own, scale, &others);

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
        let factor = factor(&rows, &own, scale);
        let chosen = match basis {
            Basis::Own => &own,
            Basis::Total => &total,
        };
        for row in &mut rows {
            row.change = basis.change(row, factor);
        }
        for ((&name, mark), candidate) in chosen.names.iter().zip(&chosen.marks).zip(&chosen.candidates) {
            rows[name].p = mark.p;
            rows[name].difference = candidate.difference(&wholes, scale, [before.seconds, after.seconds]);
            rows[name].mark = mark.significant();
        }
        let changed_totals = if own.any_significant() { 0 } else { total.significant() };
        let told = chosen.marks.iter().filter(|mark| mark.p.is_some()).count();
        let (mut comparisons, untold) = (told + metric_ps.len(), chosen.marks.len() - told);
        if basis == Basis::Total {
            comparisons += own.marks.iter().filter(|mark| mark.p.is_some()).count();
        }
        sort(&mut rows, basis);
        Ok(Self { scale, basis, rows, metrics, comparisons, too_short, untold, changed_totals })
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
fn compared(names: &[&Arc<str>], samples: impl Fn(&Arc<str>) -> u64) -> Vec<usize> {
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

/// How much less all functions that did not change themselves weigh before than after: where one grows, the shares of all others shrink.
fn factor(rows: &[Row], own: &Comparison, scale: Scale) -> f64 {
    if scale == Scale::Absolute {
        return 1.0;
    }
    let mut is_marked = vec![false; rows.len()];
    own.names.iter().zip(&own.marks).for_each(|(&name, mark)| is_marked[name] = mark.significant().is_some());
    let rest = |cost: fn(&Row) -> u64| -> f64 {
        let rest = rows.iter().zip(&is_marked).filter(|(_, is_marked)| !**is_marked);
        rest.map(|(row, _)| cost(row) as f64).sum()
    };
    let (before, after) = (rest(|row| row.before.own.weight), rest(|row| row.after.own.weight));
    if before > 0.0 && after > 0.0 { before / after } else { 1.0 }
}

impl Basis {
    /// What is compared of a cost, and its share.
    #[must_use]
    pub fn of(self, cost: &Cost) -> (Sum, f64) {
        match self {
            Self::Own => (cost.own, cost.own_share),
            Self::Total => (cost.total, cost.total_share),
        }
    }

    /// After in multiples of before.
    fn change(self, row: &Row, factor: f64) -> Option<f64> {
        let [before, after] = [&row.before, &row.after].map(|cost| self.of(cost).0.weight as f64);
        (before > 0.0).then(|| after / before * factor)
    }
}

fn sort(rows: &mut [Row], basis: Basis) {
    let moved = |row: &Row| (basis.of(&row.after).1 - basis.of(&row.before).1).abs();
    rows.sort_by(|a, b| {
        let marked = b.mark.is_some().cmp(&a.mark.is_some());
        marked.then_with(|| moved(b).total_cmp(&moved(a))).then_with(|| a.name.cmp(&b.name))
    });
}

#[cfg(test)]
mod tests;
