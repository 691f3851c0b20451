//! Formats, by the extension of a file.

use std::path::Path;

/// A format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line a stack, for flame-graph tools.
    Folded,
    /// A flame graph.
    Svg,
    /// Header and table.
    Json,
    /// All of the profile, as pprof reads it.
    Pprof,
}

/// A file name that tells no format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot tell the format of `{0}` by its extension: use .folded, .svg, .json or .pb.gz, or `-` for folded stacks on stdout"
)]
pub struct UnknownFormat(String);

impl Format {
    /// The format that the extension of this path stands for.
    ///
    /// # Errors
    ///
    /// When there is no extension, or an unknown one.
    pub fn from_path(path: &Path) -> Result<Self, UnknownFormat> {
        let is_gzipped_protobuf =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".pb.gz"));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("pprof") => Ok(Self::Pprof),
            Some("gz") if is_gzipped_protobuf => Ok(Self::Pprof),
            Some("folded" | "collapsed") => Ok(Self::Folded),
            Some("svg") => Ok(Self::Svg),
            Some("json") => Ok(Self::Json),
            _ => Err(UnknownFormat(path.display().to_string())),
        }
    }

    /// What the file holds, in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Folded => "folded stacks",
            Self::Svg => "flame graph",
            Self::Json => "table and header",
            Self::Pprof => "pprof",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        assert_eq!(Format::from_path(Path::new("a.b.folded")), Ok(Format::Folded));
        assert_eq!(Format::from_path(Path::new("/x/a.svg")), Ok(Format::Svg));
        assert_eq!(Format::from_path(Path::new("a.pb.gz")), Ok(Format::Pprof));
        assert_eq!(Format::from_path(Path::new("a.pprof")), Ok(Format::Pprof));
        assert!(Format::from_path(Path::new("svg")).is_err());
        assert!(Format::from_path(Path::new("a.tar.gz")).is_err());
        assert!(Format::from_path(Path::new("a.pdf")).unwrap_err().to_string().contains(".folded"));
    }
}
