//! Simulated runs of known truth.

use super::*;
use crate::profile::model::{EventId, Sample};
use crate::profile::testing::{profile, with_counter};
use crate::profile::{By, Slices, Table};

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A run of 40 slices with 200 samples each, that visits functions of these costs in visits of some samples.
fn run(costs: &[(&str, f64)], visit: u64, random: &mut Random) -> Profile {
    let stacks: Vec<(String, u64, u64)> =
        costs.iter().map(|(name, _)| (format!("main;{name}"), 0, 0)).collect();
    let stacks: Vec<(&str, u64, u64)> = stacks.iter().map(|(stack, ..)| (stack.as_str(), 0, 0)).collect();
    let mut profile = profile(&stacks);
    profile.header.slices = Slices { count: 40, seconds: 0.2 };
    profile.header.seconds = 8.0;
    let all: f64 = costs.iter().map(|(_, cost)| cost).sum();
    let blank = std::mem::take(&mut profile.samples);
    let mut left = 0;
    let mut function = 0;
    for slice in 0..40 {
        for _ in 0..200 {
            if left == 0 {
                let mut at = random.next() * all;
                let found = costs.iter().position(|(_, cost)| {
                    at -= cost;
                    at < 0.0
                });
                function = found.unwrap_or(0);
                left = visit;
            }
            left -= 1;
            let stack = blank[function].stack;
            profile.samples.push(Sample { slice, stack, samples: 1, weight: 1000, ..blank[0] });
        }
    }
    profile
}

const COSTS: [(&str, f64); 6] =
    [("alpha", 30.0), ("beta", 25.0), ("gamma", 20.0), ("delta", 15.0), ("epsilon", 9.0), ("zeta", 1.0)];

fn marked(diff: &Diff) -> Vec<(&str, Mark)> {
    diff.rows.iter().filter_map(|row| Some((&*row.name, row.mark?))).collect()
}

trait FunctionNamed {
    fn named(&self, name: &str) -> &Row;
}

impl FunctionNamed for Diff {
    fn named(&self, name: &str) -> &Row {
        self.rows.iter().find(|row| &*row.name == name).unwrap()
    }
}

#[test]
fn exactly_what_changed_is_marked() {
    let mut random = Random(1);
    for changed in ["alpha", "gamma", "epsilon"] {
        for factor in [2.0, 0.5] {
            let costs = COSTS.map(|(name, cost)| (name, if name == changed { cost * factor } else { cost }));
            let (before, after) = (run(&COSTS, 1, &mut random), run(&costs, 1, &mut random));
            let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
            let mark = if factor > 1.0 { Mark::Slower } else { Mark::Faster };
            assert_eq!(marked(&diff), [(changed, mark)], "{changed} × {factor}");
            let change = diff.rows[0].change.unwrap();
            assert!((change / factor - 1.0).abs() < 0.15, "{changed} × {factor}: {change}");
        }
    }
}

#[test]
fn several_changes_are_all_marked() {
    let costs = COSTS.map(|(name, cost)| match name {
        "alpha" => (name, cost * 2.0),
        "delta" => (name, cost * 0.5),
        _ => (name, cost),
    });
    let mut random = Random(2);
    let (before, after) = (run(&COSTS, 1, &mut random), run(&costs, 1, &mut random));
    let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
    let mut marks = marked(&diff);
    marks.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(marks, [("alpha", Mark::Slower), ("delta", Mark::Faster)]);
    let (worst, growth) = diff.worst().unwrap();
    assert!(&*worst.name == "alpha" && (0.8..1.2).contains(&growth), "{growth}");
}

/// At most 5 of 100 pairs of equal runs may have a mark; 200 pairs each of visits of 1 and of 40 samples.
#[test]
fn nothing_is_marked_where_nothing_changed() {
    let mut random = Random(3);
    for visit in [1, 40] {
        let pairs = 200;
        let wrong = (0..pairs)
            .filter(|_| {
                let (before, after) = (run(&COSTS, visit, &mut random), run(&COSTS, visit, &mut random));
                let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
                !marked(&diff).is_empty()
            })
            .count();
        eprintln!("visits of {visit}: {wrong} of {pairs}");
        assert!(wrong <= pairs * 8 / 100, "visits of {visit}: {wrong} of {pairs} pairs are marked");
    }
}

#[test]
fn functions_of_one_side_are_compared_with_nothing() {
    let mut random = Random(4);
    let renamed = COSTS.map(|(name, cost)| if name == "beta" { ("omega", cost) } else { (name, cost) });
    let (before, after) = (run(&COSTS, 1, &mut random), run(&renamed, 1, &mut random));
    let diff = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
    let mut marks = marked(&diff);
    marks.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(marks, [("beta", Mark::Faster), ("omega", Mark::Slower)]);
    assert_eq!((diff.named("omega").change, diff.named("beta").change), (None, Some(0.0)));
    assert!(diff.worst().unwrap().1.is_infinite());
}

#[test]
fn the_whole_cost_counts_where_it_is_asked_for() {
    let mut random = Random(5);
    let (before, mut after) = (run(&COSTS, 1, &mut random), run(&COSTS, 1, &mut random));
    // Twice as much of everything in the same time: no share changes.
    after.samples.iter_mut().for_each(|sample| sample.weight *= 2);
    let normalised = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
    assert!(marked(&normalised).is_empty());
    let absolute = Diff::new(&before, &after, Scale::Absolute, Basis::Own).unwrap();
    assert!(marked(&absolute).len() >= 5, "{:?}", marked(&absolute));
    let alpha = absolute.named("alpha").difference.unwrap();
    assert!((alpha.value / (0.3 * 8e6) - 1.0).abs() < 0.2, "{alpha:?}");
}

#[test]
fn short_runs_say_so_and_mark_nothing() {
    let one = profile(&[("main;f", 300, 300), ("main;g", 100, 100)]);
    let other = profile(&[("main;f", 100, 100), ("main;g", 300, 300)]);
    let diff = Diff::new(&one, &other, Scale::Normalised, Basis::Own).unwrap();
    assert!(marked(&diff).is_empty() && diff.too_short.is_some() && diff.comparisons == 0);
    assert!((diff.named("f").after.own_share - 0.25).abs() < 1e-9);
}

#[test]
fn different_events_are_refused() {
    let one = profile(&[("main", 1, 1)]);
    let mut other = profile(&[("main", 1, 1)]);
    other.header.event.name = "cycles".into();
    other.header.event.unit = "cycles".into();
    let error = Diff::new(&one, &other, Scale::Normalised, Basis::Own).unwrap_err().to_string();
    assert!(error.contains("cpu-clock") && error.contains("cycles"), "{error}");
}

#[test]
fn metrics_are_compared_too() {
    let mut random = Random(6);
    let mut pair = [1.0, 1.5].map(|per_second| {
        let mut profile = with_counter(run(&COSTS, 1, &mut random), "page-faults", &[("main;alpha", 0, 0)]);
        profile.header.counters[0].name = "page-faults".into();
        let alpha = profile.samples.pop().unwrap();
        for slice in 0..40 {
            for _ in 0..(20.0 * per_second * (0.8 + 0.4 * random.next())) as u64 {
                profile.samples.push(Sample { slice, event: EventId(1), samples: 1, weight: 1, ..alpha });
            }
        }
        profile
    });
    let [before, after] = &mut pair;
    let diff = Diff::new(before, after, Scale::Normalised, Basis::Own).unwrap();
    assert_eq!(diff.metrics.len(), 1, "{:?}", Table::new(before, By::Function).metrics());
    let alpha = &diff.named("alpha").metrics[0];
    assert!(alpha.is_marked, "{alpha:?}");
    assert!(marked(&diff).is_empty());
    assert!(!diff.named("beta").metrics[0].is_marked);
}

/// A function in phases as long as half the run says nothing of other runs, and must not make the others look changed.
#[test]
fn what_cannot_be_told_marks_no_other() {
    let mut random = Random(7);
    let pair = [60, 600].map(|extra| {
        let mut profile = run(&COSTS, 1, &mut random);
        let alpha = profile.samples.iter().find(|sample| {
            let frame = profile.stack(sample.stack)[1];
            &*profile.function(profile.frame(frame).function).name == "alpha"
        });
        let alpha = *alpha.unwrap();
        profile.samples.extend((0..20).map(|slice| Sample {
            slice,
            samples: extra,
            weight: extra * 1000,
            ..alpha
        }));
        profile
    });
    let diff = Diff::new(&pair[0], &pair[1], Scale::Normalised, Basis::Own).unwrap();
    assert!(marked(&diff).is_empty() && diff.untold >= 1, "{:?}, {} untold", marked(&diff), diff.untold);
    assert!(diff.named("alpha").p.is_none() && diff.named("beta").p.is_some());
}

/// A run of 40 slices with 200 samples each, of these stacks at random.
fn run_of_stacks(stacks: &[(&str, f64)], random: &mut Random) -> Profile {
    let mut run = run(stacks, 1, random);
    let names: Vec<(&str, u64, u64)> = stacks.iter().map(|(stack, _)| (*stack, 0, 0)).collect();
    let blank = profile(&names);
    run.functions = blank.functions.clone();
    run.frames = blank.frames.clone();
    run.stacks = blank.stacks.clone();
    run
}

/// Two callers of one function.
const CALLS: [(&str, f64); 4] =
    [("main;often;shared", 20.0), ("main;seldom;shared", 20.0), ("main;often", 10.0), ("main;other", 50.0)];

fn totals(before: &Profile, after: &Profile) -> Diff {
    Diff::new(before, after, Scale::Normalised, Basis::Total).unwrap()
}

#[test]
fn a_caller_that_calls_a_shared_function_more_often_is_named() {
    let mut random = Random(11);
    // As much of the shared function as before, from other callers.
    let moved = CALLS.map(|(stack, cost)| match stack {
        "main;often;shared" => (stack, cost + 12.0),
        "main;seldom;shared" => (stack, cost - 12.0),
        _ => (stack, cost),
    });
    let (before, after) = (run_of_stacks(&CALLS, &mut random), run_of_stacks(&moved, &mut random));
    let own = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
    assert_eq!((marked(&own), own.changed_totals), (vec![], 2));
    let diff = totals(&before, &after);
    let mut marks = marked(&diff);
    marks.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(marks, [("often", Mark::Slower), ("seldom", Mark::Faster)]);
    let often = diff.named("often").change.unwrap();
    assert!((often / 1.4 - 1.0).abs() < 0.1, "{often}");
    assert_eq!(&*diff.worst().unwrap().0.name, "often");
}

#[test]
fn all_callers_of_what_became_slower_are_named_and_no_other() {
    let mut random = Random(14);
    let slower = CALLS
        .map(|(stack, cost)| if stack == "main;often;shared" { (stack, cost * 2.0) } else { (stack, cost) });
    let (before, after) = (run_of_stacks(&CALLS, &mut random), run_of_stacks(&slower, &mut random));
    // Own marks explain them, so that no hint is needed.
    let own = Diff::new(&before, &after, Scale::Normalised, Basis::Own).unwrap();
    assert_eq!((marked(&own), own.changed_totals), (vec![("shared", Mark::Slower)], 0));
    let diff = totals(&before, &after);
    let mut marks = marked(&diff);
    marks.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(marks, [("main", Mark::Slower), ("often", Mark::Slower), ("shared", Mark::Slower)]);
    for (name, change) in [("main", 1.2), ("often", 50.0 / 30.0), ("shared", 1.5), ("seldom", 1.0)] {
        let found = diff.named(name).change.unwrap();
        assert!((found / change - 1.0).abs() < 0.1, "{name}: {found}");
    }
}

/// At most 5 of 100 pairs of equal runs may have a mark.
#[test]
fn no_total_is_marked_where_nothing_changed() {
    let mut random = Random(13);
    let pairs = 200;
    let wrong = (0..pairs)
        .filter(|_| {
            let (before, after) = (run_of_stacks(&CALLS, &mut random), run_of_stacks(&CALLS, &mut random));
            !marked(&totals(&before, &after)).is_empty()
        })
        .count();
    eprintln!("totals: {wrong} of {pairs}");
    assert!(wrong <= pairs * 8 / 100, "{wrong} of {pairs} pairs are marked");
}
