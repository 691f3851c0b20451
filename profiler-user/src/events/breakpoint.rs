//! Hardware breakpoints: `mem:ADDR[/LEN][:access]`.

use super::parse_error::ParseEventError;
use perf_event::events::{Breakpoint, BreakpointAccess};

/// How a breakpoint begins.
pub(super) const PREFIX: &str = "mem:";

/// Reads what `event` has after [`PREFIX`], and gives the breakpoint and the text of its modifiers, if any.
///
/// As in perf, the access is `rw` and the length of data 4 bytes when they are not named.
///
/// # Errors
/// The address, length or access is none that a CPU can watch.
pub(super) fn parse(event: &str) -> Result<(Breakpoint, Option<&str>), ParseEventError> {
    let bad = |problem| ParseEventError::BadBreakpoint { event: event.to_owned(), problem };
    let text = event.strip_prefix(PREFIX).ok_or_else(|| bad(BAD_FORM))?;
    let (place, rest) = split_at_colon(text);
    let (access, modifiers) = match rest.map(split_at_colon) {
        None => (None, None),
        Some((access, modifiers)) if is_access(access) => (Some(access), modifiers),
        Some(_) => (None, rest),
    };
    let (address, length) = match place.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (place, None),
    };
    let address = parse_address(address).ok_or_else(|| bad(BAD_ADDRESS))?;
    let length = length.map(parse_length).transpose().map_err(bad)?;
    let breakpoint = watch(address, access.unwrap_or("rw"), length).map_err(bad)?;
    Ok((breakpoint, modifiers))
}

/// The name perf prints, with the length where it is not the usual one.
pub(super) fn canonical(breakpoint: &Breakpoint) -> String {
    match breakpoint {
        Breakpoint::Code { addr } => format!("{PREFIX}{addr:#x}:x"),
        Breakpoint::Data { access, addr, len } => {
            let length = if *len == DEFAULT_DATA_LENGTH { String::new() } else { format!("/{len}") };
            let read = if access.contains(BreakpointAccess::READ) { "r" } else { "" };
            let write = if access.contains(BreakpointAccess::WRITE) { "w" } else { "" };
            format!("{PREFIX}{addr:#x}{length}:{read}{write}")
        }
    }
}

/// Plural noun for what the breakpoint counts.
pub(super) fn unit(breakpoint: &Breakpoint) -> &'static str {
    match breakpoint {
        Breakpoint::Code { .. } => "executions",
        Breakpoint::Data { .. } => "accesses",
    }
}

/// perf's default for data (`HW_BREAKPOINT_LEN_4`).
const DEFAULT_DATA_LENGTH: u64 = 4;
/// What the kernel wants as length of an execution breakpoint: `sizeof(long)` (perf_event_open(2)).
const CODE_LENGTH: u64 = 8;

const BAD_FORM: &str = "write mem:ADDRESS[/LENGTH][:access]";
const BAD_ADDRESS: &str =
    "the address must be a decimal number, or a hexadecimal one after 0x, of at most 64 bits";
const BAD_LENGTH: &str = "the length must be 1, 2, 4 or 8 bytes";
const REPEATED_ACCESS: &str = "write each of r, w and x once";
const MIXED_ACCESS: &str = "no CPU watches execution and data in one breakpoint: use either x, or r and w";
const CODE_WITH_LENGTH: &str = "an execution breakpoint has no length: leave it out";

fn split_at_colon(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// The letters of accesses and of modifiers have none in common.
fn is_access(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| matches!(letter, 'r' | 'w' | 'x'))
}

fn parse_address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // from_str_radix takes a sign.
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

fn parse_length(text: &str) -> Result<u64, &'static str> {
    match text {
        "1" => Ok(1),
        "2" => Ok(2),
        "4" => Ok(4),
        "8" => Ok(8),
        _ => Err(BAD_LENGTH),
    }
}

fn watch(address: u64, access: &str, length: Option<u64>) -> Result<Breakpoint, &'static str> {
    let count = |wanted| access.chars().filter(|&letter| letter == wanted).count();
    let (reads, writes, executions) = (count('r'), count('w'), count('x'));
    if reads > 1 || writes > 1 || executions > 1 {
        return Err(REPEATED_ACCESS);
    }
    if executions == 1 {
        return match (reads + writes, length) {
            (0, None | Some(CODE_LENGTH)) => Ok(Breakpoint::execute(address)),
            (0, Some(_)) => Err(CODE_WITH_LENGTH),
            _ => Err(MIXED_ACCESS),
        };
    }
    let mut access = BreakpointAccess::empty();
    access.set(BreakpointAccess::READ, reads == 1);
    access.set(BreakpointAccess::WRITE, writes == 1);
    Ok(Breakpoint::Data { access, addr: address, len: length.unwrap_or(DEFAULT_DATA_LENGTH) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_perf() {
        for (event, expected, modifiers) in [
            ("mem:0x401130", Breakpoint::read_write(0x40_1130, 4), None),
            ("mem:4096:w", Breakpoint::write(4096, 4), None),
            ("mem:0x10:r", Breakpoint::read(0x10, 4), None),
            ("mem:0x10/1:wr", Breakpoint::read_write(0x10, 1), None),
            ("mem:0x10/2", Breakpoint::read_write(0x10, 2), None),
            ("mem:0x10/8:rw:u", Breakpoint::read_write(0x10, 8), Some("u")),
            ("mem:0x401130:x", Breakpoint::execute(0x40_1130), None),
            ("mem:0x401130/8:x", Breakpoint::execute(0x40_1130), None),
            ("mem:0x401130:x:u", Breakpoint::execute(0x40_1130), Some("u")),
            ("mem:0x401130:u", Breakpoint::read_write(0x40_1130, 4), Some("u")),
            ("mem:0x401130:", Breakpoint::read_write(0x40_1130, 4), Some("")),
            ("mem:0xffffffffffffffff:x", Breakpoint::execute(u64::MAX), None),
        ] {
            assert_eq!(parse(event), Ok((expected, modifiers)), "{event}");
            assert_eq!(parse(&canonical(&expected)), Ok((expected, None)), "{event}");
        }
    }

    #[test]
    fn canonical_names() {
        assert_eq!(canonical(&Breakpoint::execute(0x40_1130)), "mem:0x401130:x");
        assert_eq!(canonical(&Breakpoint::read_write(0x40_1130, 4)), "mem:0x401130:rw");
        assert_eq!(canonical(&Breakpoint::write(0x40_1130, 8)), "mem:0x401130/8:w");
    }

    #[test]
    fn what_no_cpu_can_watch_is_refused() {
        for (event, problem) in [
            ("mem:", BAD_ADDRESS),
            ("mem:main:x", BAD_ADDRESS),
            ("mem:0x:x", BAD_ADDRESS),
            ("mem:+1:x", BAD_ADDRESS),
            ("mem:0x+1:x", BAD_ADDRESS),
            ("mem:0x10000000000000000:x", BAD_ADDRESS),
            ("mem:0x10/3", BAD_LENGTH),
            ("mem:0x10/", BAD_LENGTH),
            ("mem:0x10/16:w", BAD_LENGTH),
            ("mem:0x10/4:x", CODE_WITH_LENGTH),
            ("mem:0x10:rx", MIXED_ACCESS),
            ("mem:0x10/8:rwx", MIXED_ACCESS),
            ("mem:0x10:rr", REPEATED_ACCESS),
        ] {
            let expected = ParseEventError::BadBreakpoint { event: event.to_owned(), problem };
            assert_eq!(parse(event), Err(expected), "{event}");
        }
    }
}
