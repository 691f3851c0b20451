//! The content of a section that may be compressed (`SHF_COMPRESSED`, or `.zdebug_` by its name).

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

use object::{CompressedFileRange, CompressionFormat};

use super::CompileError;

/// More than any real section has. A few bytes can stand for gigabytes, so what it claims to become is checked before any of it is unpacked.
const MAX_UNPACKED: u64 = 1 << 26;

/// The bytes of a section, unpacked. What becomes longer than it claims is an error, or is cut off there.
pub(super) fn unpack(file: &File, section: CompressedFileRange) -> Result<Vec<u8>, CompileError> {
    let size = section.uncompressed_size;
    if size.max(section.compressed_size) > MAX_UNPACKED {
        return Err(CompileError::TooLarge);
    }
    // Both are within the limit, which any machine can address.
    let mut packed = vec![0; section.compressed_size as usize];
    file.read_exact_at(&mut packed, section.offset)?;
    let mut unpacked = Vec::new();
    match section.format {
        CompressionFormat::None => return Ok(packed),
        CompressionFormat::Zlib => {
            flate2::read::ZlibDecoder::new(packed.as_slice()).take(size).read_to_end(&mut unpacked)?;
        }
        CompressionFormat::Zstandard => unpacked = zstd::bulk::decompress(&packed, size as usize)?,
        _ => return Err(CompileError::NoFrames),
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    static CONTENT: [u8; 100_000] = [7; 100_000];

    fn unpacked(format: CompressionFormat, packed: &[u8], claimed: u64) -> Result<Vec<u8>, CompileError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(packed).unwrap();
        let compressed_size = packed.len() as u64;
        unpack(&file, CompressedFileRange { format, offset: 6, compressed_size, uncompressed_size: claimed })
    }

    fn zlib() -> Vec<u8> {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&CONTENT).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn each_form_gives_back_the_content() {
        let zstd = zstd::encode_all(CONTENT.as_slice(), 3).unwrap();
        for (format, packed) in [
            (CompressionFormat::None, CONTENT.to_vec()),
            (CompressionFormat::Zlib, zlib()),
            (CompressionFormat::Zstandard, zstd),
        ] {
            assert_eq!(unpacked(format, &packed, 100_000).unwrap(), CONTENT, "{format:?}");
        }
    }

    #[test]
    fn what_claims_too_much_is_not_unpacked() {
        let refused = unpacked(CompressionFormat::Zlib, &zlib(), MAX_UNPACKED + 1);
        assert!(matches!(refused, Err(CompileError::TooLarge)));
    }

    #[test]
    fn what_claims_too_little_becomes_no_longer() {
        assert_eq!(unpacked(CompressionFormat::Zlib, &zlib(), 1000).unwrap().len(), 1000);
        let zstd = zstd::encode_all(CONTENT.as_slice(), 3).unwrap();
        assert!(unpacked(CompressionFormat::Zstandard, &zstd, 1000).is_err());
    }

    #[test]
    fn damaged_content_is_an_error() {
        for format in [CompressionFormat::Zlib, CompressionFormat::Zstandard] {
            assert!(unpacked(format, &[1, 2, 3, 4], 1000).is_err());
        }
    }
}
