//! One function: who calls it, and what it calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::model::{FunctionId, Profile};
use super::sum::Sum;

/// A function, or all functions of one name, with its callers and callees.
#[derive(Debug)]
pub struct Neighbours {
    /// Its name.
    pub name: Arc<str>,
    /// What falls on it alone, by event.
    pub own: Box<[Sum]>,
    /// What falls on it and what it calls, by event.
    pub total: Box<[Sum]>,
    /// What called it, by descending weight of the main event; together they are its total.
    pub callers: Vec<Neighbour>,
    /// What it called, likewise; with its own part they are its total.
    pub callees: Vec<Neighbour>,
    /// All of the profile, by event.
    pub whole: Box<[Sum]>,
}

/// A caller or a callee.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Name of the function; `None` for what calls the outermost function of a stack.
    pub name: Option<Arc<str>>,
    /// What falls on the function when called by it, or on it when called by the function; by event.
    pub part: Box<[Sum]>,
}

/// A name that is not of one function.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No function has it.
    #[error("no function in the profile is called `{0}`")]
    Unknown(String),
    /// Several have.
    #[error("`{name}` is the end of several names: {}; give more of it", candidates.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Some of the functions.
        candidates: Vec<String>,
    },
}

/// Most candidates that are told.
const CANDIDATES_TOLD: usize = 8;

/// The full name of a function that is given in full, or by the end of its path: `push` for `alloc::vec::Vec<T>::push`.
///
/// # Errors
///
/// When no function is meant, or several.
pub fn named(profile: &Profile, name: &str) -> Result<Arc<str>, NameError> {
    let names = || profile.functions.iter().map(|function| &function.name);
    if let Some(exact) = names().find(|full| &***full == name) {
        return Ok(Arc::clone(exact));
    }
    let is_end = |full: &str| full.strip_suffix(name).is_some_and(|path| path.ends_with("::"));
    let mut candidates: Vec<&Arc<str>> = names().filter(|full| is_end(full)).collect();
    candidates.sort_unstable();
    candidates.dedup();
    match candidates[..] {
        [] => Err(NameError::Unknown(name.into())),
        [one] => Ok(Arc::clone(one)),
        _ => Err(NameError::Ambiguous {
            name: name.into(),
            candidates: candidates.iter().take(CANDIDATES_TOLD).map(ToString::to_string).collect(),
        }),
    }
}

impl Neighbours {
    /// Counts what is around the functions of this full name.
    ///
    /// In a stack where the function recurs, its callers are those of its outermost call and its callees those of its innermost, so that parts
    /// add up.
    #[must_use]
    pub fn new(profile: &Profile, name: &Arc<str>) -> Self {
        let events = profile.header.counters.len() + 1;
        let blank = || vec![Sum::default(); events].into_boxed_slice();
        let (mut own, mut total, mut whole) = (blank(), blank(), blank());
        let mut callers: HashMap<Option<FunctionId>, Box<[Sum]>> = HashMap::new();
        let mut callees: HashMap<Option<FunctionId>, Box<[Sum]>> = HashMap::new();
        let is_it: Vec<bool> = profile.functions.iter().map(|function| function.name == *name).collect();
        for sample in &profile.samples {
            let (event, amount) = (usize::from(sample.event.0), sample.amount());
            let Some(sum) = whole.get_mut(event) else { continue };
            *sum += amount;
            let stack = profile.stack(sample.stack);
            let function = |place: usize| stack.get(place).map(|&frame| profile.frame(frame).function);
            let is_there =
                |place: &usize| function(*place).is_some_and(|function| is_it[function.0 as usize]);
            let Some(outermost) = (0..stack.len()).find(is_there) else { continue };
            let innermost = (0..stack.len()).rev().find(is_there).unwrap_or(outermost);
            total[event] += amount;
            let caller = outermost.checked_sub(1).and_then(function);
            callers.entry(caller).or_insert_with(blank)[event] += amount;
            match function(innermost + 1) {
                None => own[event] += amount,
                callee => callees.entry(callee).or_insert_with(blank)[event] += amount,
            }
        }
        let sorted = |parts| sorted(profile, parts);
        Self { name: Arc::clone(name), own, total, callers: sorted(callers), callees: sorted(callees), whole }
    }
}

/// By descending weight, functions of one name together.
fn sorted(profile: &Profile, parts: HashMap<Option<FunctionId>, Box<[Sum]>>) -> Vec<Neighbour> {
    let mut by_name: BTreeMap<Option<Arc<str>>, Box<[Sum]>> = BTreeMap::new();
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_unstable_by_key(|(function, _)| *function);
    for (function, part) in parts {
        let name = function.map(|function| Arc::clone(&profile.function(function).name));
        match by_name.entry(name) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(part);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().iter_mut().zip(&part).for_each(|(sum, part)| *sum += *part);
            }
        }
    }
    let mut neighbours: Vec<Neighbour> =
        by_name.into_iter().map(|(name, part)| Neighbour { name, part }).collect();
    neighbours.sort_by_key(|neighbour| std::cmp::Reverse(neighbour.part[0].weight));
    neighbours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    fn parts(neighbours: &[Neighbour]) -> Vec<(Option<&str>, u64)> {
        neighbours.iter().map(|neighbour| (neighbour.name.as_deref(), neighbour.part[0].weight)).collect()
    }

    #[test]
    fn callers_and_callees_add_up() {
        let profile = with_counter(
            profile(&[
                ("main;a;f;g", 3, 30),
                ("main;b;f;f;h", 2, 20),
                ("main;a;f", 1, 10),
                ("f;g", 1, 5),
                ("main;a", 9, 90),
            ]),
            "page-faults",
            &[("main;b;f", 1, 7)],
        );
        let neighbours = Neighbours::new(&profile, &"f".into());
        assert_eq!(parts(&neighbours.callers), [(Some("a"), 40), (Some("b"), 20), (None, 5)]);
        assert_eq!(parts(&neighbours.callees), [(Some("g"), 35), (Some("h"), 20)]);
        assert_eq!(
            (neighbours.own[0].weight, neighbours.total[0].weight, neighbours.whole[0].weight),
            (10, 65, 155)
        );
        assert_eq!((neighbours.own[1].weight, neighbours.callers[1].part[1].weight), (7, 7));
    }

    #[test]
    fn a_function_is_found_by_the_end_of_its_path() {
        let profile = profile(&[("main;a::push;b::push;b::pop", 1, 1)]);
        assert_eq!(&*named(&profile, "b::push").unwrap(), "b::push");
        assert_eq!(&*named(&profile, "pop").unwrap(), "b::pop");
        assert_eq!(named(&profile, "op").unwrap_err(), NameError::Unknown("op".into()));
        assert!(named(&profile, "push").unwrap_err().to_string().contains("a::push, b::push"));
    }
}
