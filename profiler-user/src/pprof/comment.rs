//! The header among the comments of a pprof file: one line of JSON, which reading gives back whole.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::profile::Header;

/// Version of the line's form. It grows when a reader of the old form would misread the new one; added members do not count.
const FORM: u32 = 1;

/// How the line begins.
const BEGIN: &str = "{\"bpfprof\":";

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    bpfprof: u32,
    header: Cow<'a, Header>,
}

/// The header as a comment.
pub(crate) fn to_comment(header: &Header) -> serde_json::Result<String> {
    serde_json::to_string(&Line { bpfprof: FORM, header: Cow::Borrowed(header) })
}

/// The header that a comment holds; `None` for other comments, and for those of a later version that changed its meaning.
pub(crate) fn header_of(comment: &str) -> Option<Header> {
    let line: Line<'_> = comment.starts_with(BEGIN).then(|| serde_json::from_str(comment).ok())??;
    (line.bpfprof == FORM).then(|| line.header.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was() {
        let header = Header {
            target: "command \"x\"\n".into(),
            seconds: 10.000_000_000_000_002,
            began: Some(u64::MAX),
            ..Header::default()
        };
        let comment = to_comment(&header).unwrap();
        assert!(!comment.contains('\n'), "{comment}");
        assert_eq!(header_of(&comment), Some(header));
    }

    #[test]
    fn other_comments_are_none_and_members_may_be_missing() {
        for other in
            ["", "bpfprof: 3 samples", "{\"bpfprof\":", "{\"bpfprof\":2,\"header\":{}}", "{\"bpfprof\":1}"]
        {
            assert_eq!(header_of(other), None, "{other}");
        }
        assert_eq!(header_of("{\"bpfprof\":1,\"header\":{\"more\":1}}"), Some(Header::default()));
    }
}
