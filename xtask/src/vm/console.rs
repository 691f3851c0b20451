//! Reads back from the console what the guest wrote.

use std::collections::HashMap;

use super::guest::MARK;

/// What the guest told.
#[derive(Default)]
pub(super) struct Console {
    /// The release of the kernel, once the guest was up.
    pub(super) kernel: Option<String>,
    /// Whether every trial was run.
    pub(super) is_done: bool,
    outcomes: HashMap<String, Outcome>,
}

/// What came out of a trial.
#[derive(Default)]
pub(super) struct Outcome {
    /// The exit status; `None` if the guest ended before the trial did.
    pub(super) status: Option<i32>,
    /// Files by name: `stdout`, `stderr`, and what bpfprof wrote.
    parts: HashMap<String, String>,
}

impl Console {
    /// Takes the console's text apart. What firmware and kernel wrote in between is left out.
    pub(super) fn read(text: &str) -> Self {
        let mut console = Self::default();
        let mut outcome: Option<(String, Outcome)> = None;
        let mut part: Option<String> = None;
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            let Some(told) = line.strip_prefix(MARK) else {
                if let (Some((_, outcome)), Some(part)) = (&mut outcome, &part) {
                    let content = outcome.parts.entry(part.clone()).or_default();
                    content.push_str(line);
                    content.push('\n');
                }
                continue;
            };
            let (word, value) = told.trim().split_once(' ').unwrap_or((told.trim(), ""));
            part = None;
            match word {
                "up" => console.kernel = Some(value.to_owned()),
                "trial" => {
                    console.outcomes.extend(outcome.take());
                    outcome = Some((value.to_owned(), Outcome::default()));
                }
                "part" => part = Some(value.to_owned()),
                "status" => {
                    if let Some((_, outcome)) = &mut outcome {
                        outcome.status = value.parse().ok();
                    }
                }
                "done" => console.is_done = true,
                _ => {}
            }
        }
        console.outcomes.extend(outcome);
        console
    }

    /// The outcome of a trial that was begun.
    pub(super) fn outcome(&self, trial: &str) -> Option<&Outcome> {
        self.outcomes.get(trial)
    }
}

impl Outcome {
    /// What the command wrote for its user.
    pub(super) fn stdout(&self) -> &str {
        self.part("stdout")
    }

    /// What bpfprof said.
    pub(super) fn stderr(&self) -> &str {
        self.part("stderr")
    }

    /// What it wrote as JSON.
    pub(super) fn json(&self) -> &str {
        self.part("json")
    }

    /// What it wrote as folded stacks.
    pub(super) fn folded(&self) -> &str {
        self.part("folded")
    }

    fn part(&self, name: &str) -> &str {
        self.parts.get(name).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::{Console, MARK};

    #[test]
    fn a_guest_that_stops_in_the_middle() {
        let text = format!(
            "firmware\r\n{MARK} up 6.1.0\r\n{MARK} trial one\r\n{MARK} part stderr\r\nwords\r\n\r\n\
             {MARK} status 3\r\nnoise\r\n{MARK} trial two\r\n{MARK} part folded\r\na;b 1\r\n"
        );
        let console = Console::read(&text);
        assert_eq!(console.kernel.as_deref(), Some("6.1.0"));
        assert!(!console.is_done);
        let one = console.outcome("one").unwrap();
        assert_eq!((one.status, one.stderr(), one.folded()), (Some(3), "words\n\n", ""));
        let two = console.outcome("two").unwrap();
        assert_eq!((two.status, two.folded()), (None, "a;b 1\n"));
        assert!(console.outcome("three").is_none());
    }
}
