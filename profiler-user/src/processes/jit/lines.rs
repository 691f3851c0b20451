//! Lines of perf maps.
//!
//! A line is `START SIZE NAME`, both numbers hexadecimal (`tools/perf/Documentation/jit-interface.txt` of the kernel).

use std::ops::Range;

/// Longest line, in bytes: names longer than this are cut.
pub const MAX_LINE: usize = 1 << 12;

/// The memory that a line names, and the name; `None` where the line makes no sense.
#[must_use]
pub fn entry(line: &[u8]) -> Option<(Range<u64>, String)> {
    let text = String::from_utf8_lossy(line.trim_ascii());
    let mut fields = text.splitn(3, ' ');
    let mut number = || {
        let field = fields.next()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next().map(str::trim).filter(|name| !name.is_empty())?;
    Some((start..start.checked_add(size)?, name.into()))
}
