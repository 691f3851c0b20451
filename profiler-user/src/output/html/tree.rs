//! All stacks of a profile as one tree of calls, with the weight of each event, small enough for a page.

use indexmap::{IndexMap, IndexSet};

use crate::profile::{FrameKind, FunctionId, Origin, Profile, StackId, Task};

/// Nodes with less than this part of every event are added up in a node of their own: they are narrower than a pixel.
pub(super) const SMALLEST: u64 = 20_000;

/// Calls below the threads, with what they took.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    /// What nodes stand for.
    pub(super) frames: IndexSet<TreeFrame<'a>>,
    /// Nodes, callers before what they call, all that a node calls right behind it.
    pub(super) nodes: Vec<Node>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TreeFrame<'a> {
    /// Everything.
    All,
    /// The threads of one name.
    Threads(&'a str),
    /// A function, at one kind of place, of the program or of a library of its language.
    Function(FunctionId, FrameKind, Origin),
    /// Calls that are too small for nodes of their own.
    Small,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Nodes above it.
    pub(super) depth: u32,
    /// Index of its frame.
    pub(super) frame: u32,
    /// Weight of it and all it calls, by event.
    pub(super) weights: Box<[u64]>,
}

/// Index of [`TreeFrame::All`].
const ALL: u32 = 0;
/// Index of [`TreeFrame::Small`].
const SMALL: u32 = 1;

impl<'a> Tree<'a> {
    /// Adds the stacks up.
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut frames = IndexSet::from([TreeFrame::All, TreeFrame::Small]);
        let mut number = |frame| frames.insert_full(frame).0 as u32;
        let of_frame: Vec<u32> = profile
            .frames
            .iter()
            .map(|frame| number(TreeFrame::Function(frame.function, frame.kind, profile.origin(frame))))
            .collect();
        let of_task: Vec<u32> =
            profile.tasks.iter().map(|Task { comm, .. }| number(TreeFrame::Threads(comm))).collect();

        let events = profile.header.counters.len() + 1;
        let mut whole = vec![0; events];
        let mut stacks: IndexMap<(u32, StackId), Box<[u64]>> = IndexMap::new();
        for sample in &profile.samples {
            let event = usize::from(sample.event.0);
            let Some(whole) = whole.get_mut(event) else { continue };
            *whole += sample.weight;
            let key = (of_task[sample.task.0 as usize], sample.stack);
            stacks.entry(key).or_insert_with(|| vec![0; events].into())[event] += sample.weight;
        }
        let path = |&(task, stack): &(u32, StackId)| {
            let stack = profile.stack(stack).iter().map(|frame| of_frame[frame.0 as usize]);
            [ALL, task].into_iter().chain(stack)
        };
        // Neighbours share their callers, so that one pass with the open path alone in memory is enough.
        stacks.sort_unstable_by(|a, _, b, _| path(a).cmp(path(b)));
        let mut growth = Growth::new(whole);
        for (key, weights) in &stacks {
            growth.add(path(key), weights);
        }
        Self { nodes: growth.finish(), frames }
    }
}

/// A tree that grows by one path after the other, in their order.
struct Growth {
    whole: Vec<u64>,
    /// Frames of the last path that was added.
    open: Vec<u32>,
    /// Weights of the open nodes, those of an event side by side.
    weights: Vec<u64>,
    /// The same of their callees that were too small.
    small: Vec<u64>,
    /// Finished nodes, the last first.
    closed: Vec<Node>,
}

impl Growth {
    fn new(whole: Vec<u64>) -> Self {
        Self { whole, open: Vec::new(), weights: Vec::new(), small: Vec::new(), closed: Vec::new() }
    }

    fn add(&mut self, path: impl Iterator<Item = u32>, weights: &[u64]) {
        let mut path = path.peekable();
        let mut shared = 0;
        while self.open.get(shared).is_some_and(|open| path.next_if_eq(open).is_some()) {
            shared += 1;
        }
        self.close_down_to(shared);
        for frame in path {
            self.open.push(frame);
            self.weights.resize(self.open.len() * self.events(), 0);
            self.small.resize(self.open.len() * self.events(), 0);
        }
        add_to_last(&mut self.weights, weights);
    }

    fn finish(mut self) -> Vec<Node> {
        self.close_down_to(0);
        self.closed.reverse();
        self.closed
    }

    fn events(&self) -> usize {
        self.whole.len()
    }

    fn close_down_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            self.close();
        }
    }

    /// Closes the innermost open node: it becomes a node, or part of what is small in its caller.
    fn close(&mut self) {
        let Some(frame) = self.open.pop() else { return };
        let start = self.open.len() * self.events();
        let weights: Box<[u64]> = self.weights.drain(start..).collect();
        let small: Box<[u64]> = self.small.drain(start..).collect();
        add_to_last(&mut self.weights, &weights);
        if self.is_small(&weights) {
            add_to_last(&mut self.small, &weights);
            return;
        }
        let depth = self.open.len() as u32;
        if small.iter().any(|&weight| weight > 0) {
            self.closed.push(Node { depth: depth + 1, frame: SMALL, weights: small });
        }
        self.closed.push(Node { depth, frame, weights });
    }

    fn is_small(&self, weights: &[u64]) -> bool {
        weights
            .iter()
            .zip(&self.whole)
            .all(|(&weight, &whole)| weight.saturating_mul(SMALLEST) < whole.max(1))
    }
}

/// Adds to the weights of the innermost open node.
fn add_to_last(sums: &mut [u64], weights: &[u64]) {
    for (sum, weight) in sums.iter_mut().rev().zip(weights.iter().rev()) {
        *sum += weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile, with_counter};

    /// Each node as `depth name weight…`.
    fn lines(profile: &Profile) -> Vec<String> {
        let tree = Tree::new(profile);
        let line = |node: &Node| {
            let name = match tree.frames[node.frame as usize] {
                TreeFrame::All => "all",
                TreeFrame::Threads(comm) => comm,
                TreeFrame::Function(function, ..) => &profile.function(function).name,
                TreeFrame::Small => "small",
            };
            format!("{} {name} {:?}", node.depth, node.weights)
        };
        tree.nodes.iter().map(line).collect()
    }

    #[test]
    fn stacks_share_their_callers() {
        let profile = with_counter(
            profile(&[("main;f;g", 1, 30), ("main", 1, 10), ("main;f", 1, 5), ("other", 1, 1)]),
            "page-faults",
            &[("main;f;g", 1, 2)],
        );
        let mut found = lines(&profile);
        assert_eq!(found[..2], ["0 all [46, 2]", "1 app [46, 2]"]);
        let main = found.iter().position(|line| line == "2 main [45, 2]").unwrap();
        assert_eq!(found[main..main + 3], ["2 main [45, 2]", "3 f [35, 2]", "4 g [30, 2]"]);
        found.sort();
        assert_eq!(found.last().unwrap(), "4 g [30, 2]");
        assert!(found.contains(&"2 other [1, 0]".into()) && found.len() == 6, "{found:?}");
    }

    #[test]
    fn what_is_small_is_added_up_in_its_caller() {
        let found =
            lines(&profile(&[("main", 1, 100_000), ("main;a;b", 1, 2), ("main;c", 1, 3), ("d", 1, 5)]));
        assert_eq!(found[..2], ["0 all [100010]", "1 app [100010]"]);
        // 5 of 100,010 is not quite one in 20,000.
        assert!(
            found.contains(&"2 small [5]".into()) && found.contains(&"2 main [100005]".into()),
            "{found:?}"
        );
        assert!(found.contains(&"3 small [5]".into()) && found.len() == 5, "{found:?}");
    }

    #[test]
    fn what_is_large_in_one_event_stays() {
        let profile = with_counter(
            profile(&[("main", 1, 1_000_000), ("main;f", 1, 1)]),
            "page-faults",
            &[("main;f", 1, 1)],
        );
        assert!(lines(&profile).contains(&"3 f [1, 1]".into()));
    }

    #[test]
    fn an_empty_profile_has_no_nodes() {
        assert!(lines(&Profile::default()).is_empty());
    }
}
