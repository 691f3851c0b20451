//! The header among the comments of a pprof file: JSON, which reading gives back whole.
//!
//! It is cut into lines: pprof shows comments beside its graphs, as wide as the longest is.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::profile::Header;

/// Version of the line's form. It grows when a reader of the old form would misread the new one; added members do not count.
const FORM: u32 = 1;

/// How it begins.
const BEGIN: &str = "{\"bpfprof\":";

/// Characters of a line.
const WIDTH: usize = 120;

#[derive(Serialize, Deserialize)]
struct Document<'a> {
    bpfprof: u32,
    header: Cow<'a, Header>,
}

/// The header as comments.
pub(crate) fn to_comments(header: &Header) -> serde_json::Result<Vec<String>> {
    let text = serde_json::to_string(&Document { bpfprof: FORM, header: Cow::Borrowed(header) })?;
    let characters: Vec<char> = text.chars().collect();
    Ok(characters.chunks(WIDTH).map(String::from_iter).collect())
}

/// The headers among comments, without those of a later version that changed their meaning.
pub(crate) fn headers_in<'a>(comments: impl Iterator<Item = &'a str>) -> Vec<Header> {
    let mut headers = Vec::new();
    let mut text = String::new();
    for comment in comments {
        if comment.starts_with(BEGIN) {
            text.clear();
        } else if text.is_empty() {
            continue;
        }
        text.push_str(comment);
        // Whether it is whole shows only when it is read; a line that ends so may be within it.
        if comment.ends_with('}')
            && let Ok(document) = serde_json::from_str::<Document<'_>>(&text)
        {
            text.clear();
            if document.bpfprof == FORM {
                headers.push(document.header.into_owned());
            }
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was() {
        let header = Header {
            target: format!("command \"x\"\n {} ü", "}".repeat(1000)),
            seconds: 10.000_000_000_000_002,
            began: Some(u64::MAX),
            ..Header::default()
        };
        let mut comments = to_comments(&header).unwrap();
        let lines = comments.len();
        assert!(
            comments.len() > 3 && comments.iter().all(|line| line.chars().count() <= WIDTH),
            "{comments:?}"
        );
        comments.insert(0, "bpfprof: 3 samples".into());
        comments.push("added later".into());
        let read = |comments: &[String]| headers_in(comments.iter().map(String::as_str));
        assert_eq!(read(&comments), [header]);
        comments.extend(to_comments(&Header::default()).unwrap());
        assert_eq!(read(&comments).len(), 2);
        // Its end: without a line from the middle of a text it would be a header all the same.
        comments.remove(lines);
        assert_eq!(read(&comments), [Header::default()]);
    }

    #[test]
    fn other_comments_are_none_and_members_may_be_missing() {
        for other in
            ["", "bpfprof: 3 samples", "{\"bpfprof\":", "{\"bpfprof\":2,\"header\":{}}", "{\"bpfprof\":1}"]
        {
            assert!(headers_in([other].into_iter()).is_empty(), "{other}");
        }
        let read = headers_in(["{\"bpfprof\":1,\"header\":{\"more\":1}}"].into_iter());
        assert_eq!(read, [Header::default()]);
    }
}
