//! Counts tests from what libtest prints, and from the list of skips that the tests keep.

use std::{collections::BTreeMap, fmt};

/// Tests that ran, by outcome, and those that did not, with the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    passed: u64,
    failed: u64,
    skipped: BTreeMap<String, String>,
}

impl Report {
    /// Counts one line of libtest's output.
    pub(crate) fn count_line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count_before(counts, " passed;");
            self.failed += count_before(counts, " failed;");
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
            && let Some(reason) = outcome.strip_prefix("ignored")
        {
            let reason = reason.trim_start_matches(", ");
            self.skip(name, if reason.is_empty() { "marked as ignored" } else { reason });
        }
    }

    /// Books a test that was never started.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.skipped.insert(name.to_owned(), reason.to_owned());
    }

    /// Books a failure that libtest did not count, such as a test program that was killed.
    pub(crate) fn fail(&mut self) {
        self.failed += 1;
    }

    /// Takes over the tests' own list of skips, lines of `name<TAB>reason`. libtest saw these return and counted them as passed.
    pub(crate) fn apply_skip_list(&mut self, list: &str) {
        for line in list.lines().filter(|line| !line.is_empty()) {
            let (name, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
            if self.skipped.insert(name.to_owned(), reason.to_owned()).is_none() {
                self.passed = self.passed.saturating_sub(1);
            }
        }
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Whether tests ran and none failed.
    pub(crate) fn is_success(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// The skipped tests and why, in the order of their names.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.skipped.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }
}

/// `N passed, N failed, N skipped`: the last line of a test run.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }
}

/// The number in front of `label`, 0 when there is none.
fn count_before(text: &str, label: &str) -> u64 {
    let before = text.split(label).next().filter(|before| before.len() < text.len());
    before.and_then(|before| before.rsplit(' ').next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Report;

    fn report_of(output: &str) -> Report {
        let mut report = Report::default();
        output.lines().for_each(|line| report.count_line(line));
        report
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let report = report_of(
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\
             test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
        );
        assert_eq!(report.to_string(), "17 passed, 3 failed, 0 skipped");
        assert!(!report.is_success());
    }

    #[test]
    fn an_ignored_test_is_a_skip_with_its_reason() {
        let report = report_of(
            "test folded::a ... ok\ntest folded::b ... ignored\ntest folded::c ... ignored, needs a PMU\n\
             test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        assert_eq!(report.to_string(), "1 passed, 0 failed, 2 skipped");
        let skipped: Vec<_> = report.skipped().collect();
        assert_eq!(skipped, [("folded::b", "marked as ignored"), ("folded::c", "needs a PMU")]);
    }

    #[test]
    fn a_listed_skip_does_not_count_as_passed_and_counts_once() {
        let mut report =
            report_of("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        report.apply_skip_list("cgroup\tno cgroup v2\ncgroup\tno cgroup v2\n");
        assert_eq!(report.to_string(), "2 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_run_without_tests_is_no_success() {
        assert!(
            !report_of("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out")
                .is_success()
        );
        assert!(
            report_of("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out")
                .is_success()
        );
    }

    #[test]
    fn what_a_test_prints_is_not_counted() {
        assert_eq!(
            report_of("test of the counter: 4 passed; hello\nsome 3 failed; here").to_string(),
            "0 passed, 0 failed, 0 skipped"
        );
    }
}
