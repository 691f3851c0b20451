//! gzip and zstd, known by how they begin.

use std::borrow::Cow;
use std::io::Read;

use super::{Bytes, MOST_BYTES, SavedError};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The content of a file; files that are not packed stay as they are.
pub(super) fn unpack(bytes: &[u8]) -> Result<Bytes<'_>, SavedError> {
    if bytes.len() > MOST_BYTES {
        return Err(SavedError::TooLarge);
    }
    if bytes.starts_with(GZIP) {
        return read_at_most(flate2::read::MultiGzDecoder::new(bytes), MOST_BYTES).map(Cow::Owned);
    }
    if bytes.starts_with(ZSTD) {
        return read_at_most(zstd::Decoder::with_buffer(bytes)?, MOST_BYTES).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(bytes))
}

/// A few bytes can stand for gigabytes, so the end is not waited for.
fn read_at_most(from: impl Read, most: usize) -> Result<Vec<u8>, SavedError> {
    let mut content = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut content)?;
    if content.len() > most { Err(SavedError::TooLarge) } else { Ok(content) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn unpacking_stops_at_the_limit() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&[7; 100_000]).unwrap();
        let file = gzip.finish().unwrap();
        assert!(file.len() < 1000);
        assert_eq!(unpack(&file).unwrap().len(), 100_000);
        let gunzip = || flate2::read::MultiGzDecoder::new(file.as_slice());
        assert!(matches!(read_at_most(gunzip(), 99_999), Err(SavedError::TooLarge)));
        assert_eq!(read_at_most(gunzip(), 100_000).unwrap().len(), 100_000);
    }
}
