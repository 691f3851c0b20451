//! The same profile under other names of functions.

use super::model::{Frame, FrameId, Function, FunctionId, Profile, StackId};

impl Profile {
    /// Gives functions other names. Those that get the same name in one object become one function.
    #[must_use]
    pub fn renamed(mut self, name: impl Fn(&str) -> String) -> Self {
        let functions = std::mem::take(&mut self.functions);
        let functions: Vec<FunctionId> = functions
            .into_iter()
            .map(|function| self.add_function(Function { name: name(&function.name).into(), ..function }))
            .collect();
        let frames = std::mem::take(&mut self.frames);
        let frames: Vec<FrameId> = frames
            .into_iter()
            .map(|frame| self.add_frame(Frame { function: functions[frame.function.0 as usize], ..frame }))
            .collect();
        let stacks = std::mem::take(&mut self.stacks);
        let stacks: Vec<StackId> = stacks
            .into_iter()
            .map(|stack| {
                self.add_stack(stack.iter().map(|frame| frames[frame.0 as usize]).collect::<Box<[_]>>())
            })
            .collect();
        for sample in &mut self.samples {
            sample.stack = stacks[sample.stack.0 as usize];
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::testing::profile;
    use crate::profile::{By, Table};

    #[test]
    fn functions_of_one_name_become_one() {
        let before = profile(&[("main;f1;g", 3, 30), ("main;f2;g", 1, 10)]);
        let after = before.renamed(|name| name.trim_end_matches(['1', '2']).to_string());
        let table = Table::new(&after, By::Function);
        let totals: Vec<(&str, u64)> =
            table.rows.iter().map(|row| (&*row.label.name, row.total[0].weight)).collect();
        assert_eq!(totals, [("g", 40), ("f", 40), ("main", 40)]);
        assert_eq!(after.stacks.len(), 1);
    }
}
