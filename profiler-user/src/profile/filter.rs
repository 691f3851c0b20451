//! Taking a part of a profile: some processes, some threads, some stacks.

use regex::Regex;

use super::model::{EventId, Profile, Sample};
use crate::kernel::Amount;

/// Which samples are kept; all of them by default.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those with a function in their stack that matches.
    pub focus: Option<Regex>,
    /// Only those without one that matches.
    pub ignore: Option<Regex>,
    /// Only those of threads with this command name.
    pub comm: Option<String>,
    /// Only those of these processes; empty for all.
    pub processes: Vec<u32>,
}

impl Filter {
    /// The samples that are wanted, under a header that says so. Totals are those of what is kept; what is said of losses, stacks and names
    /// stays that of the whole.
    #[must_use]
    pub fn apply(&self, mut profile: Profile) -> Profile {
        let Some(words) = self.words() else { return profile };
        let matching =
            |pattern: &Option<Regex>| pattern.as_ref().map(|pattern| stacks_with(&profile, pattern));
        let (focus, ignore) = (matching(&self.focus), matching(&self.ignore));
        let tasks: Vec<bool> = profile
            .tasks
            .iter()
            .map(|task| {
                self.comm.as_ref().is_none_or(|comm| *comm == *task.comm)
                    && (self.processes.is_empty() || self.processes.contains(&task.process))
            })
            .collect();
        let is_wanted = |sample: &Sample| {
            let stack = sample.stack.0 as usize;
            tasks[sample.task.0 as usize]
                && focus.as_ref().is_none_or(|stacks| stacks[stack])
                && ignore.as_ref().is_none_or(|stacks| !stacks[stack])
        };
        profile.samples.retain(is_wanted);
        let (samples, weight) = (profile.header.samples, profile.header.weight);
        recount(&mut profile);
        let share = profile.header.weight as f64 / weight.max(1) as f64 * 100.0;
        profile.header.notes.push(format!(
            "filtered by {words}: {} of {samples} samples, {share:.2} % of the weight; shares are of these, and what is said of losses, \
             stacks and names is of all",
            profile.header.samples,
        ));
        profile
    }

    /// What it asks for, as on the command line; `None` when it asks for nothing.
    fn words(&self) -> Option<String> {
        let pattern = |name, pattern: &Option<Regex>| {
            pattern.as_ref().map(|pattern| format!("--{name} {}", pattern.as_str()))
        };
        let processes: Vec<String> = self.processes.iter().map(u32::to_string).collect();
        let words: Vec<String> = [
            pattern("focus", &self.focus),
            pattern("ignore", &self.ignore),
            self.comm.as_ref().map(|comm| format!("--comm {comm}")),
            (!processes.is_empty()).then(|| format!("--pid {}", processes.join(","))),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Whether each stack has a function that matches.
fn stacks_with(profile: &Profile, pattern: &Regex) -> Vec<bool> {
    let functions: Vec<bool> =
        profile.functions.iter().map(|function| pattern.is_match(&function.name)).collect();
    let frames: Vec<bool> = profile.frames.iter().map(|frame| functions[frame.function.0 as usize]).collect();
    profile.stacks.iter().map(|stack| stack.iter().any(|frame| frames[frame.0 as usize])).collect()
}

/// Makes the totals of the header those of the samples.
fn recount(profile: &mut Profile) {
    let Profile { header, samples, .. } = profile;
    let total =
        |event| -> Amount { samples.iter().filter(|sample| sample.event == event).map(Sample::amount).sum() };
    for (event, info) in
        (0..).map(EventId).zip(std::iter::once(&mut header.event).chain(&mut header.counters))
    {
        let total = total(event);
        (info.samples, info.weight) = (total.samples, total.weight);
    }
    (header.samples, header.weight) = (header.event.samples, header.event.weight);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Task;
    use crate::profile::testing::{profile, with_counter};

    fn sample() -> Profile {
        let mut profile = with_counter(
            profile(&[("main;f;g", 3, 30), ("main;f", 1, 10), ("main;h", 6, 60)]),
            "page-faults",
            &[("main;f", 1, 5), ("main;h", 2, 9)],
        );
        let other = profile.add_task(Task { process: 1, thread: 2, comm: "other".into(), cgroup: "".into() });
        profile.samples[0].task = other;
        profile
    }

    fn kept(filter: &Filter) -> (u64, u64, u64) {
        let header = filter.apply(sample()).header;
        (header.samples, header.weight, header.counters[0].weight)
    }

    #[test]
    fn stacks_and_tasks_are_chosen() {
        let pattern = |text| Some(Regex::new(text).unwrap());
        assert_eq!(kept(&Filter { focus: pattern("^f$"), ..Filter::default() }), (4, 40, 5));
        assert_eq!(kept(&Filter { ignore: pattern("f|g"), ..Filter::default() }), (6, 60, 9));
        assert_eq!(kept(&Filter { comm: Some("other".into()), ..Filter::default() }), (3, 30, 0));
        assert_eq!(kept(&Filter { processes: vec![42, 7], ..Filter::default() }), (7, 70, 14));
        let both = Filter { focus: pattern("f"), processes: vec![42], ..Filter::default() };
        assert_eq!(kept(&both), (1, 10, 5));
    }

    #[test]
    fn the_header_says_what_was_chosen() {
        assert!(Filter::default().apply(sample()).header.notes.is_empty());
        let filter = Filter { comm: Some("other".into()), processes: vec![1, 2], ..Filter::default() };
        let note = filter.apply(sample()).header.notes.pop().unwrap();
        assert!(
            note.starts_with("filtered by --comm other --pid 1,2: 3 of 10 samples, 30.00 % of the weight"),
            "{note}"
        );
    }
}
