//! Saved profiles: from the bytes of a file to a [`Profile`], whatever program wrote it. Files come from strangers: every size is bounded, every
//! index checked.

mod builder;
mod file;
mod folded;
mod foreign;
mod packed;
mod perf_script;
mod pprof;
#[cfg(test)]
mod round_trip;

use std::borrow::Cow;

use crate::profile::Profile;

pub use file::open;

/// Why a file gives no profile.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// Larger than is read.
    #[error("it unpacks to more than {} MiB, which is the most that is read", MOST_BYTES >> 20)]
    TooLarge,
    /// Not what gzip or zstd write.
    #[error("it cannot be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    /// The recording of another tool.
    #[error(
        "it is perf's own recording: `perf script -i FILE > FILE.txt` makes text of it, which can be read"
    )]
    PerfData,
    /// None of the formats.
    #[error("it is neither pprof nor folded stacks nor the text of perf script")]
    Unknown,
    /// A line of text that is none of its format.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A pprof file that contradicts itself.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// No samples.
    #[error("it holds no samples")]
    Empty,
}

/// Most bytes of a file, packed or not: far above profiles with a million stacks, and less than would exhaust a small machine.
pub const MOST_BYTES: usize = 2 << 30;

/// How perf's recordings begin.
const PERF_DATA: &[u8] = b"PERFILE2";

/// Reads a profile. The content says its format: pprof (gzip, zstd or plain), folded stacks, or the text of `perf script`.
///
/// # Errors
///
/// When it is none of these, is damaged, too large or empty.
pub fn read(bytes: &[u8]) -> Result<Profile, SavedError> {
    let bytes = packed::unpack(bytes)?;
    if bytes.starts_with(PERF_DATA) {
        return Err(SavedError::PerfData);
    }
    if !is_text(&bytes) {
        return pprof::read(bytes.into_owned().into());
    }
    let text = String::from_utf8_lossy(&bytes);
    match content_lines(&text).next() {
        Some((_, line)) if perf_script::is_header(line) => perf_script::read(&text),
        Some((_, line)) if folded::is_line(line) => folded::read(&text),
        Some(_) => Err(SavedError::Unknown),
        None => Err(SavedError::Empty),
    }
}

/// Whether it begins as text does: protobuf's lengths and tags are control characters.
fn is_text(bytes: &[u8]) -> bool {
    let mut start = bytes.iter().take(4096);
    start.all(|byte| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\t' | b'\r'))
}

/// Lines with their numbers, without comments and empty ones.
fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Bytes, unpacked or as they were.
type Bytes<'a> = Cow<'a, [u8]>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{self, Format, View};
    use crate::profile::testing::{profile, with_counter};

    /// The file of a small profile.
    fn saved() -> Vec<u8> {
        let profile = with_counter(
            profile(&[("main;f_[i];read;sys_read_[k]", 2, 20), ("main;g", 1, 10)]),
            "page-faults",
            &[("main;g", 3, 7)],
        );
        let mut file = Vec::new();
        output::write(&profile, Format::Pprof, &View::default(), &mut file).unwrap();
        file
    }

    #[test]
    fn the_content_decides_and_not_the_packing() {
        let gzipped = saved();
        let plain = packed::unpack(&gzipped).unwrap().into_owned();
        let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap();
        for file in [gzipped, plain, zstd] {
            assert_eq!(read(&file).unwrap().header.weight, 30);
        }
        assert_eq!(read(b"# a comment\n\nmain;f 3\n").unwrap().header.weight, 3);
        for (file, error) in [
            (&b"PERFILE2xxx"[..], "perf script"),
            (b"", "no samples"),
            (b"\n\n", "no samples"),
            (b"hello", "neither"),
            (b"\x1f\x8b\x08", "unpacked"),
            (b"main;f 3\nmain;f\n", "line 2"),
        ] {
            let message = read(file).unwrap_err().to_string();
            assert!(message.contains(error), "{message}");
        }
    }

    /// Whatever happens to a file, reading it ends with a profile that every output can show, or with an error.
    #[test]
    fn damage_is_survived() {
        let plain = packed::unpack(&saved()).unwrap().into_owned();
        let texts = [
            plain,
            b"app;main;f_[i];sys_[k] 12\napp;main 3\n".to_vec(),
            b"app 1/2 [000] 1.5: 250 cycles:\n\t  5a1 main+0x1 (/bin/app)\n\t 5a0 f (inlined)\n\napp 1 2.0: x:\n"
                .to_vec(),
        ];
        // splitmix64.
        let mut state = 1_u64;
        let mut random = |bound: usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed ^ (mixed >> 29)) % bound as u64) as usize
        };
        let mut sound = 0;
        for text in &texts {
            for _ in 0..1500 {
                let mut bytes = text.clone();
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    match random(4) {
                        0 => bytes[at] = random(256) as u8,
                        1 => bytes[at] ^= 1 << random(8),
                        2 => bytes.truncate(at.max(1)),
                        _ => {
                            let to = (at + random(16)).min(bytes.len());
                            let part = bytes[at..to].to_vec();
                            bytes.splice(at..at, part);
                        }
                    }
                }
                let Ok(profile) = read(&bytes) else { continue };
                sound += 1;
                for format in [Format::Folded, Format::Json, Format::Pprof] {
                    output::write(&profile, format, &View::default(), &mut std::io::sink()).unwrap();
                }
                output::write_header(&profile.header, output::Detail::Full, &mut std::io::sink()).unwrap();
            }
        }
        assert!(sound > 300, "only {sound} of the damaged files could be read at all");
    }
}
