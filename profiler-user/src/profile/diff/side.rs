//! One of the two profiles, by function.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Cost, Scale};
use crate::profile::measured::Measured;
use crate::profile::metrics::Metric;
use crate::profile::model::{EventId, Profile};
use crate::profile::slices::{by_event, whole};
use crate::profile::statistics::Repeat;
use crate::profile::sum::Sum;

/// A profile, by function. Functions of one name are one, whatever object they lie in: objects are renamed from build to build.
pub(super) struct Side<'a> {
    profile: &'a Profile,
    pub(super) functions: HashMap<Arc<str>, Function>,
    /// Length of the run.
    pub(super) seconds: f64,
    whole: u64,
    measured: Measured,
}

/// A function.
pub(super) struct Function {
    pub(super) object: Arc<str>,
    /// What falls on it alone, by event.
    pub(super) own: Box<[Sum]>,
    /// What falls on it and what it calls, of the main event.
    total: Sum,
    /// The samples in `own`, by index in the profile.
    samples: Vec<u32>,
}

impl<'a> Side<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let events = profile.header.counters.len() + 1;
        // Numbers of the names, by function.
        let mut numbers: HashMap<&Arc<str>, usize> = HashMap::new();
        let mut functions: Vec<(Arc<str>, Function)> = Vec::new();
        let by_function: Vec<usize> = profile
            .functions
            .iter()
            .map(|function| {
                *numbers.entry(&function.name).or_insert_with(|| {
                    let own = vec![Sum::default(); events].into();
                    let object = Arc::clone(&function.object);
                    let blank = Function { object, own, total: Sum::default(), samples: Vec::new() };
                    functions.push((Arc::clone(&function.name), blank));
                    functions.len() - 1
                })
            })
            .collect();
        let mut whole = 0;
        let mut seen = Vec::new();
        for (index, sample) in (0..).zip(&profile.samples) {
            let event = usize::from(sample.event.0);
            let stack = profile.stack(sample.stack);
            seen.clear();
            seen.extend(stack.iter().map(|&frame| by_function[profile.frame(frame).function.0 as usize]));
            let Some(&leaf) = seen.last() else { continue };
            let (_, function) = &mut functions[leaf];
            let Some(own) = function.own.get_mut(event) else { continue };
            *own += sample.amount();
            function.samples.push(index);
            if event == 0 {
                whole += sample.weight;
                seen.sort_unstable();
                seen.dedup();
                seen.iter().for_each(|&function| functions[function].1.total += sample.amount());
            }
        }
        let was_sampled =
            |(_, function): &(Arc<str>, Function)| function.total.weight > 0 || !function.samples.is_empty();
        Self {
            profile,
            functions: functions.into_iter().filter(was_sampled).collect(),
            seconds: profile.header.seconds,
            whole,
            measured: Measured::new(&profile.header),
        }
    }

    /// The metrics that the events are enough for.
    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        self.measured.metrics()
    }

    /// What a function costs; nothing where it is not there.
    pub(super) fn cost(&self, name: &Arc<str>) -> Cost {
        let Some(function) = self.functions.get(name) else { return Cost::default() };
        let share = |sum: Sum| sum.weight as f64 / self.whole.max(1) as f64;
        let (own, total) = (function.own[0], function.total);
        Cost { own, total, own_share: share(own), total_share: share(total) }
    }

    /// Samples of the main event in a function itself.
    pub(super) fn own_samples(&self, name: &Arc<str>) -> u64 {
        self.functions.get(name).map_or(0, |function| function.own[0].samples)
    }

    /// Samples of the main event in a function and all it calls.
    pub(super) fn total_samples(&self, name: &Arc<str>) -> u64 {
        self.functions.get(name).map_or(0, |function| function.total.samples)
    }

    /// What each slice added to functions and all they call.
    pub(super) fn total_slices(&self, names: &[&Arc<str>]) -> Vec<Vec<f64>> {
        let numbers: HashMap<&Arc<str>, usize> =
            names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let of_function: Vec<Option<usize>> =
            self.profile.functions.iter().map(|function| numbers.get(&function.name).copied()).collect();
        let mut sums = vec![vec![0.0; self.profile.header.slices.count as usize]; names.len()];
        let mut seen: Vec<usize> = Vec::new();
        for sample in self.profile.samples_of(EventId::MAIN) {
            let stack = self.profile.stack(sample.stack).iter();
            seen.clear();
            seen.extend(
                stack.filter_map(|&frame| of_function[self.profile.frame(frame).function.0 as usize]),
            );
            seen.sort_unstable();
            seen.dedup();
            for &number in &seen {
                if let Some(sum) = sums[number].get_mut(sample.slice as usize) {
                    *sum += sample.weight as f64;
                }
            }
        }
        sums
    }

    /// What each slice added to a function itself.
    pub(super) fn slices_of(&self, name: &Arc<str>) -> Vec<f64> {
        let samples = self.functions.get(name).map_or(&[][..], |function| &function.samples);
        by_event(self.profile, samples).swap_remove(0)
    }

    /// What the functions' slices are set against: all samples of the slice, or its length.
    pub(super) fn whole_slices(&self, scale: Scale) -> Vec<f64> {
        let slices = self.profile.header.slices;
        match scale {
            Scale::Normalised => whole(self.profile),
            Scale::Absolute => vec![slices.seconds; slices.count as usize],
        }
    }

    /// A metric of a function with its repeat interval.
    pub(super) fn metric(&self, metric: &Metric, name: &Arc<str>) -> Option<Repeat> {
        let by_event = by_event(self.profile, &self.functions.get(name)?.samples);
        self.measured.repeat(metric, by_event)?.ok()
    }
}
