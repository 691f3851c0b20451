//! Formats, by the extension of a file.

use std::path::Path;

/// A format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line a stack, for flame-graph tools.
    Folded,
    /// A flame graph.
    Svg,
    /// A page with header, table and flame graph.
    Html,
    /// Header and table.
    Json,
    /// All of the profile, as pprof reads it.
    Pprof,
    /// The Firefox Profiler's format.
    Firefox,
    /// Speedscope's own format.
    Speedscope,
}

/// Endings of file names and what they stand for; of two that fit, the longer comes first.
const ENDINGS: [(&str, Format); 9] = [
    (".folded", Format::Folded),
    (".collapsed", Format::Folded),
    (".svg", Format::Svg),
    (".html", Format::Html),
    (".speedscope.json", Format::Speedscope),
    (".json", Format::Json),
    (".pb.gz", Format::Pprof),
    (".pprof", Format::Pprof),
    (".profile.json.gz", Format::Firefox),
];

/// A file name that tells no format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot tell the format of `{0}` by its extension: use {endings}, or `-` for folded stacks on stdout", endings = endings())]
pub struct UnknownFormat(String);

impl Format {
    /// The format that the extension of this path stands for.
    ///
    /// # Errors
    ///
    /// When there is no extension, or an unknown one.
    pub fn from_path(path: &Path) -> Result<Self, UnknownFormat> {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        ENDINGS
            .iter()
            .find(|(ending, _)| name.ends_with(ending))
            .map(|&(_, format)| format)
            .ok_or_else(|| UnknownFormat(path.display().to_string()))
    }

    /// What the file holds, in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Folded => "folded stacks",
            Self::Svg => "flame graph",
            Self::Html => "report for a browser",
            Self::Json => "table and header",
            Self::Pprof => "pprof",
            Self::Firefox => "for the Firefox Profiler",
            Self::Speedscope => "for Speedscope",
        }
    }
}

fn endings() -> String {
    ENDINGS.map(|(ending, _)| ending).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        let cases = [
            ("a.b.folded", Format::Folded),
            ("/x/a.svg", Format::Svg),
            ("a.html", Format::Html),
            ("a.json", Format::Json),
            ("a.pb.gz", Format::Pprof),
            ("a.pprof", Format::Pprof),
            ("a.b.speedscope.json", Format::Speedscope),
            ("a.profile.json.gz", Format::Firefox),
        ];
        for (path, format) in cases {
            assert_eq!(Format::from_path(Path::new(path)), Ok(format), "{path}");
        }
        for path in ["svg", "a.tar.gz"] {
            assert!(Format::from_path(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn an_unknown_extension_is_refused_with_those_that_are_known() {
        let refusal = Format::from_path(Path::new("a.pdf")).unwrap_err().to_string();
        for (ending, _) in ENDINGS {
            assert!(refusal.contains(ending), "{refusal}");
        }
    }
}
