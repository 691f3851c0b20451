//! Folded stacks: `comm;root;…;leaf WEIGHT`. Frames that end in `_[k]` ran in the kernel, in `_[i]` were inlined, in `_[j]` made at run time.

use super::builder::Builder;
use super::foreign::{self, KERNEL, UNKNOWN};
use super::{SavedError, content_lines};
use crate::profile::{EventId, FrameId, FrameKind, Profile, Sample, Slices, Task};

/// Whether a line is a stack.
pub(super) fn is_line(line: &str) -> bool {
    split(line).is_some()
}

/// Reads the lines.
pub(super) fn read(text: &str) -> Result<Profile, SavedError> {
    let mut builder = Builder::new(1);
    for (line, content) in content_lines(text) {
        let (stack, weight) =
            split(content).ok_or(SavedError::Line { line, what: "no stack with a number behind it" })?;
        let (comm, frames) = stack.split_once(';').unwrap_or((stack, UNKNOWN));
        let task =
            builder.profile.add_task(Task { process: 0, thread: 0, comm: comm.into(), cgroup: "".into() });
        let mut ids = Vec::new();
        for name in frames.split(';') {
            let frame = frame(&mut builder, name, ids.last().copied());
            ids.push(frame);
        }
        let stack = builder.add_stack(ids)?;
        builder.add_sample(Sample { task, stack, slice: 0, event: EventId::MAIN, samples: 0, weight })?;
    }
    let event = foreign::event("an event that the file does not name", "units", "rate not known");
    let source =
        "stacks alone: the number of samples, what was lost and how whole the stacks are is not known";
    let header =
        foreign::header("folded stacks", source, event, Vec::new(), Slices { count: 1, seconds: 0.0 });
    Ok(builder.finish(header)?.0)
}

fn frame(builder: &mut Builder, name: &str, outer: Option<FrameId>) -> FrameId {
    if let Some(name) = name.strip_suffix("_[k]") {
        let kernel = builder.object(KERNEL);
        return builder.frame(name, FrameKind::Kernel, kernel, 0);
    }
    if let Some(inlined) = name.strip_suffix("_[i]") {
        // Inlined into nothing is as good as not inlined.
        return match outer.map(|outer| builder.profile.frame(outer)) {
            Some(outer) => builder.frame(inlined, FrameKind::Inlined, outer.mapping, outer.address),
            None => {
                let object = builder.object("");
                builder.frame(inlined, FrameKind::User, object, 0)
            }
        };
    }
    let object = builder.object("");
    builder.frame(name.strip_suffix("_[j]").unwrap_or(name), FrameKind::User, object, 0)
}

/// Stack and weight. Some tools write fractions, which are rounded.
fn split(line: &str) -> Option<(&str, u64)> {
    let (stack, weight) = line.trim_end().rsplit_once(' ')?;
    let weight = weight.parse().ok().or_else(|| {
        let weight: f64 = weight.parse().ok()?;
        (0.0..1e18).contains(&weight).then_some(weight.round() as u64)
    })?;
    (!stack.trim().is_empty()).then_some((stack, weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{self, Format, View};

    #[test]
    fn what_was_folded_folds_again() {
        let text = "app;main 3\napp;main;f_[i];read;sys_read_[k] 12\nother;[unknown] 1\n";
        let mut again = Vec::new();
        let profile = read(text).unwrap();
        output::write(&profile, Format::Folded, &View::default(), &mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), text);
        assert_eq!((profile.header.samples, profile.header.weight), (0, 16));
    }

    #[test]
    fn lines_of_other_tools_are_understood() {
        let profile = read("a b;main;f(int, char) 1.6\nalone 2\nx;_[i] 1\nx;js_[j] 1\n").unwrap();
        let names: Vec<&str> = profile.functions.iter().map(|function| &*function.name).collect();
        assert_eq!(names, ["main", "f(int, char)", "[unknown]", "js"]);
        assert_eq!(profile.header.weight, 6);
        assert!(matches!(read("a;b x\n"), Err(SavedError::Line { line: 1, .. })));
        assert!(matches!(read("a;b 0\n"), Err(SavedError::Empty)));
    }
}
