//! Which inlined functions have rows of their own.

use std::borrow::Cow;

use super::model::{Frame, FrameId, FrameKind, Profile, StackId};
use super::own_code::{is_library, is_runtime};

/// Which inlined functions have rows of their own in tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Inlines {
    /// Those outside the standard library of their language. Its inlined code counts for the function that it is part of.
    #[default]
    Own,
    /// All.
    All,
    /// None: only functions that the linker sees.
    None,
}

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Of the people who wrote the program, or of the kernel.
    Own,
    /// Of the standard library of the language, or of what runs before the program's own code.
    Library,
}

impl Profile {
    /// The profile as tables count it: without the frames that have no rows of their own.
    #[must_use]
    pub fn with_inlines(&self, inlines: Inlines) -> Cow<'_, Self> {
        let is_hidden = |frame: &Frame| match inlines {
            Inlines::All => false,
            Inlines::None => frame.kind == FrameKind::Inlined,
            Inlines::Own => frame.kind == FrameKind::Inlined && self.is_library(frame),
        };
        let hidden: Vec<bool> = self.frames.iter().map(is_hidden).collect();
        if !hidden.contains(&true) {
            return Cow::Borrowed(self);
        }
        let mut shown = Self { stacks: indexmap::IndexSet::new(), ..self.clone() };
        let stacks: Vec<StackId> = self
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack.iter().copied().filter(|frame| !hidden[frame.0 as usize]);
                shown.add_stack(frames.collect::<Box<[FrameId]>>())
            })
            .collect();
        for sample in &mut shown.samples {
            sample.stack = stacks[sample.stack.0 as usize];
        }
        Cow::Owned(shown.numbered_by_samples())
    }

    /// Whose code a frame is.
    #[must_use]
    pub fn origin(&self, frame: &Frame) -> Origin {
        let function = self.function(frame.function);
        let is_library = match frame.kind {
            FrameKind::Kernel => false,
            FrameKind::Inlined => self.is_library(frame),
            FrameKind::User => self.is_library(frame) || is_runtime(&function.name, &function.object),
        };
        if is_library { Origin::Library } else { Origin::Own }
    }

    fn is_library(&self, frame: &Frame) -> bool {
        let file = frame.line.map(|line| &*self.line(line).file);
        is_library(&self.function(frame.function).name, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;
    use crate::profile::{By, Table};

    fn own(profile: &Profile, inlines: Inlines) -> Vec<(String, u64, u64)> {
        let table = Table::new(&profile.with_inlines(inlines), By::Function);
        let row =
            |row: &crate::profile::Row| (row.label.name.to_string(), row.own[0].weight, row.total[0].weight);
        table.rows.iter().map(row).collect()
    }

    fn row(name: &str, own: u64, total: u64) -> (String, u64, u64) {
        (name.into(), own, total)
    }

    #[test]
    fn what_is_inlined_from_a_library_counts_for_the_function_around_it() {
        let profile = profile(&[
            ("main;app::sum;core::iter::fold_[i];app::sum::{closure}_[i];<u64>::wrapping_add_[i]", 4, 40),
            ("main;app::sum;core::hint::black_box_[i]", 2, 20),
            ("main;core::slice::sort;app::compare_[i]", 1, 10),
            ("main;core::slice::sort", 1, 5),
        ]);
        assert_eq!(
            own(&profile, Inlines::Own),
            [
                row("app::sum::{closure}", 40, 40),
                row("app::sum", 20, 60),
                row("app::compare", 10, 10),
                row("core::slice::sort", 5, 15),
                row("main", 0, 75)
            ]
        );
        assert_eq!(
            own(&profile, Inlines::None),
            [row("app::sum", 60, 60), row("core::slice::sort", 15, 15), row("main", 0, 75)]
        );
        assert_eq!(own(&profile, Inlines::All)[0], row("<u64>::wrapping_add", 40, 40));
    }

    #[test]
    fn a_profile_with_nothing_to_hide_is_not_copied() {
        let profile = profile(&[("main;std::f;app::g_[i]", 1, 1)]);
        assert!(matches!(profile.with_inlines(Inlines::Own), Cow::Borrowed(_)));
        assert!(matches!(profile.with_inlines(Inlines::None), Cow::Owned(_)));
    }

    #[test]
    fn only_user_code_comes_from_a_library() {
        let profile = profile(&[("_start;std::rt::start;app::f;core::f_[i];std::f_[k]", 1, 1)]);
        let origins: Vec<Origin> = profile.frames.iter().map(|frame| profile.origin(frame)).collect();
        use Origin::{Library, Own};
        assert_eq!(origins, [Library, Library, Own, Library, Own]);
    }
}
