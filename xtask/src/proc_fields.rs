//! Fields of files in `/proc` that have a name, a colon and a number in each line.

/// The number of a field without its unit; `None` where there is no such field.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Bytes of a field that is given in kB, which are units of 1024 bytes there (proc(5)).
pub(crate) fn bytes(text: &str, name: &str) -> Option<u64> {
    number(text, name)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{bytes, number};

    #[test]
    fn fields_of_status_and_fdinfo() {
        let text = "Name:\tbpfprof\nVmRSS:\t   1024 kB\nVmRSSX:\t 7 kB\nmap_id:\t12\n";
        assert_eq!(bytes(text, "VmRSS"), Some(1 << 20));
        assert_eq!(number(text, "map_id"), Some(12));
        assert_eq!(number(text, "map"), None);
        assert_eq!(number(text, "Name"), None);
        assert_eq!(bytes(&format!("VmHWM: {} kB", u64::MAX), "VmHWM"), None);
    }
}
