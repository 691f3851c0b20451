//! CPU time of processes, by `/proc/PID/stat`.

use std::fs;

use anyhow::{Context, Result};

/// Clock ticks of `/proc/PID/stat`: the kernel's `USER_HZ` on x86_64 and aarch64.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of a process, in seconds.
pub(super) fn of_process(process: u32) -> Result<f64> {
    seconds(&process.to_string(), 14)
}

/// The same of all children of this process that it has waited for, and of theirs.
pub(super) fn of_ended_children() -> Result<f64> {
    seconds("self", 16)
}

/// Two fields, of which this is the first as proc(5) numbers them.
fn seconds(process: &str, first: usize) -> Result<f64> {
    let file = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&file).with_context(|| format!("{file} cannot be read"))?;
    sum_of_two(&stat, first).with_context(|| format!("{file} is not as expected"))
}

fn sum_of_two(stat: &str, first: usize) -> Option<f64> {
    // The second field, the name in parentheses, may hold anything.
    let (_, from_third) = stat.rsplit_once(") ")?;
    let mut fields = from_third.split(' ').skip(first.checked_sub(3)?);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::sum_of_two;

    #[test]
    fn fields_behind_a_name_with_spaces() {
        let stat = "7 (a ) name) S 4 5 6 7 8 9 10 11 12 13 140 60 100 25 18\n";
        assert_eq!(sum_of_two(stat, 14), Some(2.0));
        assert_eq!(sum_of_two(stat, 16), Some(1.25));
        assert_eq!(sum_of_two(stat, 18), None);
        assert_eq!(sum_of_two("7 (name", 14), None);
    }
}
