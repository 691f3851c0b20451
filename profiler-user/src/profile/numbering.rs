//! One numbering for profiles of equal content.

use super::model::{Frame, FrameId, FunctionId, LineId, MappingId, Profile, Sample, StackId, TaskId};

impl Profile {
    /// The profile with everything numbered in the order in which its samples, sorted, need it, and without what none needs.
    ///
    /// A saved profile is numbered so when it is read. Outputs may then go by numbers, and are the same before and after.
    #[must_use]
    pub fn numbered_by_samples(mut self) -> Self {
        self.samples.sort_unstable();
        self.header.make_printable();
        let mut numbered = Self { header: std::mem::take(&mut self.header), ..Self::default() };
        let mut known = Known {
            tasks: vec![None; self.tasks.len()],
            stacks: vec![None; self.stacks.len()],
            frames: vec![None; self.frames.len()],
            functions: vec![None; self.functions.len()],
            mappings: vec![None; self.mappings.len()],
            lines: vec![None; self.lines.len()],
        };
        numbered.samples = self
            .samples
            .iter()
            .map(|sample| Sample {
                task: known.task(sample.task, &self, &mut numbered),
                stack: known.stack(sample.stack, &self, &mut numbered),
                ..*sample
            })
            .collect();
        numbered
    }
}

/// New numbers by old ones, as far as they are known.
struct Known {
    tasks: Vec<Option<TaskId>>,
    stacks: Vec<Option<StackId>>,
    frames: Vec<Option<FrameId>>,
    functions: Vec<Option<FunctionId>>,
    mappings: Vec<Option<MappingId>>,
    lines: Vec<Option<LineId>>,
}

impl Known {
    fn task(&mut self, id: TaskId, from: &Profile, to: &mut Profile) -> TaskId {
        *self.tasks[id.0 as usize].get_or_insert_with(|| to.add_task(from.task(id).clone()))
    }

    fn stack(&mut self, id: StackId, from: &Profile, to: &mut Profile) -> StackId {
        if let Some(known) = self.stacks[id.0 as usize] {
            return known;
        }
        let frames: Box<[FrameId]> =
            from.stack(id).iter().map(|&frame| self.frame(frame, from, to)).collect();
        let stack = to.add_stack(frames);
        self.stacks[id.0 as usize] = Some(stack);
        stack
    }

    fn frame(&mut self, id: FrameId, from: &Profile, to: &mut Profile) -> FrameId {
        if let Some(known) = self.frames[id.0 as usize] {
            return known;
        }
        let old = from.frame(id);
        let function = *self.functions[old.function.0 as usize]
            .get_or_insert_with(|| to.add_function(from.function(old.function).clone()));
        let mapping = *self.mappings[old.mapping.0 as usize]
            .get_or_insert_with(|| to.add_mapping(from.mapping(old.mapping).clone()));
        let line = old.line.map(|line| {
            *self.lines[line.0 as usize].get_or_insert_with(|| to.add_line(from.line(line).clone()))
        });
        let frame = to.add_frame(Frame { function, mapping, line, ..old });
        self.frames[id.0 as usize] = Some(frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;
    use crate::profile::testing::profile;

    fn names(profile: &Profile) -> Vec<&str> {
        profile.functions.iter().map(|function| &*function.name).collect()
    }

    #[test]
    fn what_samples_need_first_comes_first_and_what_none_needs_is_gone() {
        let mut before = profile(&[("unused", 1, 1), ("main;b", 1, 1), ("main;a;b", 2, 2)]);
        before.samples.remove(0);
        before.samples.swap(0, 1);
        let after = before.numbered_by_samples();
        assert_eq!(names(&after), ["main", "b", "a"]);
        assert_eq!((after.stacks.len(), after.samples.len(), after.samples[1].weight), (2, 2, 2));
        let again = Profile { samples: after.samples.clone(), ..after }.numbered_by_samples();
        assert_eq!(names(&again), ["main", "b", "a"]);
    }
}
