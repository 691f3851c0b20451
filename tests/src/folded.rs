//! Folded stacks: `comm;root;…;leaf WEIGHT`, one stack a line.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::run::read_output;

/// All lines of an output.
#[derive(Clone, Debug)]
pub struct Folded {
    /// In the order of the file.
    pub lines: Vec<Line>,
}

/// One stack.
#[derive(Clone, Debug)]
pub struct Line {
    /// Command name of the thread.
    pub comm: String,
    /// Root first.
    pub frames: Vec<String>,
    /// In the event's unit.
    pub weight: u64,
}

impl Folded {
    /// Reads a whole output strictly: every line must be a stack.
    pub fn parse(text: &str) -> Result<Self> {
        ensure!(text.is_empty() || text.ends_with('\n'), "the last line is not whole");
        let lines = text
            .lines()
            .map(|line| Line::parse(line).with_context(|| format!("not a folded stack: {line:?}")));
        Ok(Self { lines: lines.collect::<Result<_>>()? })
    }

    /// Reads an output file.
    pub fn read(file: &Path) -> Result<Self> {
        Self::parse(&read_output(file)?)
    }

    /// Weight of all stacks.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight_where(|_| true)
    }

    /// Weight of the stacks with this function anywhere.
    #[must_use]
    pub fn weight_of(&self, function: &str) -> u64 {
        self.weight_where(|line| line.has(function))
    }

    /// Weight of the stacks of threads with this command name.
    #[must_use]
    pub fn weight_of_comm(&self, comm: &str) -> u64 {
        self.weight_where(|line| line.comm == comm)
    }

    /// Weight of some stacks.
    pub fn weight_where(&self, wanted: impl Fn(&Line) -> bool) -> u64 {
        self.lines.iter().filter(|line| wanted(line)).map(|line| line.weight).sum()
    }
}

impl Line {
    /// Whether the function is in the stack.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| is_function(frame, function))
    }

    /// Whether the innermost frame is of this function.
    #[must_use]
    pub fn ends_in(&self, function: &str) -> bool {
        self.frames.last().is_some_and(|frame| is_function(frame, function))
    }

    fn parse(line: &str) -> Result<Self> {
        let (stack, weight) = line.rsplit_once(' ').context("no weight")?;
        let weight = weight.parse().context("the weight is no number")?;
        ensure!(!line.chars().any(char::is_control), "a control character");
        let mut frames = stack.split(';').map(str::to_owned);
        let comm = frames.next().unwrap_or_default();
        let frames: Vec<String> = frames.collect();
        ensure!(!frames.is_empty(), "no frame");
        ensure!(!frames.iter().any(String::is_empty), "a frame without a name");
        Ok(Self { comm, frames, weight })
    }
}

/// Whether a frame, or a function of the table, is this function, given without its path.
#[must_use]
pub fn is_function(frame: &str, function: &str) -> bool {
    let name = frame.trim_end_matches("_[i]").trim_end_matches("_[k]");
    name == function || name.strip_suffix(function).is_some_and(|path| path.ends_with("::"))
}

/// Whether a frame is in the kernel.
#[must_use]
pub fn is_kernel(frame: &str) -> bool {
    frame.ends_with("_[k]")
}

/// Whether a frame has the name of a function, not one that stands in for it: `[object+0xaddress]`, `[unknown]`.
#[must_use]
pub fn is_named(frame: &str) -> bool {
    !frame.starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_strictly() {
        let folded = Folded::parse("a b;main;x::f_[i];do_exit_[k] 12\nc;g 3\n").unwrap();
        assert_eq!(folded.weight(), 15);
        assert_eq!(folded.weight_of("f"), 12);
        assert_eq!(folded.weight_of_comm("a b"), 12);
        assert!(folded.lines[1].ends_in("g"));
        for wrong in ["a;b", "a;b 1", "a 1\n", "a;;b 1\n", "a;b x\n", "\n", "a;b\t 1\n"] {
            assert!(Folded::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn functions_are_found_without_their_path() {
        assert!(is_function("spin::spin_alpha", "spin_alpha"));
        assert!(is_function("spin_alpha", "spin_alpha"));
        assert!(!is_function("not_spin_alpha", "spin_alpha"));
        assert!(is_named("main") && !is_named("[libc.so.6+0x1234]"));
    }
}
