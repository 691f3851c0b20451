//! Numbers and lists of CPUs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// The kernel's number of a logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

impl CpuId {
    /// The highest number a kernel can have: `CONFIG_NR_CPUS` is at most 8192.
    pub const MAX: Self = Self(8191);
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not a list of CPUs, or why the kernel's list could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CpuListError {
    /// Nothing is in the list.
    #[error("the CPU list is empty: write numbers and ranges such as 0-3,8")]
    Empty,
    /// A part is neither a number nor a range.
    #[error("`{}` is not a CPU number or range: write numbers and ranges such as 0-3,8", part.escape_debug())]
    NotACpu {
        /// The part between two commas.
        part: String,
    },
    /// A range ends before it begins.
    #[error("CPU range `{first}-{last}` is reversed: write {last}-{first}")]
    Reversed {
        /// The number before the `-`.
        first: CpuId,
        /// The number after it.
        last: CpuId,
    },
    /// A number is above [`CpuId::MAX`].
    #[error("CPU number `{}` is too large: the highest is {}", part.escape_debug(), CpuId::MAX)]
    TooLarge {
        /// The number as it was written.
        part: String,
    },
    /// The kernel's own list cannot be read.
    #[error("cannot read the kernel's CPU list {}: {source}; is sysfs mounted?", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The CPUs that are online now.
///
/// # Errors
/// sysfs is not there, or does not hold a CPU list.
pub fn online() -> Result<BTreeSet<CpuId>, CpuListError> {
    read_list(Path::new(ONLINE))
}

/// The CPUs that may ever come online while this kernel runs.
///
/// # Errors
/// sysfs is not there, or does not hold a CPU list.
pub fn possible() -> Result<BTreeSet<CpuId>, CpuListError> {
    read_list(Path::new(POSSIBLE))
}

/// Reads the kernel's format for CPU lists, `0-3,8`, which is also the user's.
///
/// # Errors
/// The text is empty, holds something else, a range is reversed, or a number is above [`CpuId::MAX`].
pub fn parse_list(text: &str) -> Result<BTreeSet<CpuId>, CpuListError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(CpuListError::Empty);
    }
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (parse_cpu(first, part)?, parse_cpu(last, part)?),
            None => (parse_cpu(part, part)?, parse_cpu(part, part)?),
        };
        if first > last {
            return Err(CpuListError::Reversed { first, last });
        }
        cpus.extend((first.0..=last.0).map(CpuId));
    }
    Ok(cpus)
}

/// Where the kernel lists the CPUs that are online (Documentation/admin-guide/cputopology.rst).
pub(super) const ONLINE: &str = "/sys/devices/system/cpu/online";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Reads a list of the kernel.
pub(super) fn read_list(path: &Path) -> Result<BTreeSet<CpuId>, CpuListError> {
    let text = fs::read_to_string(path)
        .map_err(|source| CpuListError::Unreadable { path: path.to_owned(), source })?;
    parse_list(&text)
}

/// `number` is one end of `part`.
fn parse_cpu(number: &str, part: &str) -> Result<CpuId, CpuListError> {
    let number = number.trim();
    if number.is_empty() || !number.chars().all(|digit| digit.is_ascii_digit()) {
        return Err(CpuListError::NotACpu { part: part.to_owned() });
    }
    // Digits that do not fit are a number too large.
    let cpu = number.parse().map_or(CpuId(u32::MAX), CpuId);
    if cpu > CpuId::MAX {
        return Err(CpuListError::TooLarge { part: number.to_owned() });
    }
    Ok(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<u32> {
        parse_list(text).unwrap().into_iter().map(|cpu| cpu.0).collect()
    }

    fn error(text: &str) -> String {
        parse_list(text).unwrap_err().to_string()
    }

    #[test]
    fn lists_of_the_kernel_and_of_the_user() {
        assert_eq!(parse("0"), [0]);
        assert_eq!(parse("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse("8,0-1,1-2, 5"), [0, 1, 2, 5, 8]);
        assert_eq!(parse("7-7"), [7]);
        assert_eq!(parse("0-8191").len(), 8192);
    }

    #[test]
    fn errors_have_words() {
        assert!(error("").contains("empty"));
        assert!(error("\n").contains("empty"));
        assert!(error("3-1").contains("`3-1` is reversed: write 1-3"));
        assert!(error("8192").contains("`8192` is too large: the highest is 8191"));
        assert!(error("0-99999999999999999999").contains("too large"));
        for text in ["a", "1,", ",1", "-1", "1-", "1-2-3", "0-6:2/4", "+1", "0x1"] {
            assert!(error(text).contains("not a CPU number"), "{text}");
        }
    }

    #[test]
    fn this_machine_has_cpus() {
        let online = online().unwrap();
        assert!(!online.is_empty());
        assert!(online.is_subset(&possible().unwrap()));
    }

    #[test]
    fn an_unreadable_list_is_named() {
        let error = read_list(Path::new("/nonexistent/online")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/online"), "{error}");
    }
}
