//! The messages of `profile.proto`, the public schema of pprof, by their field numbers.
//!
//! Samples and strings are kept as they are on the wire, so that a large file is neither built nor read as one tree of messages.

use prost::bytes::Bytes;

/// A whole file. Files may be written in parts: repeated fields of concatenated messages add up.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Profile {
    /// What the values of a sample are.
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    /// [`Sample`]s, encoded.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) sample: Vec<Bytes>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    /// Texts, which other messages name by index; the first is empty.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(crate) string_table: Vec<Bytes>,
    /// Nanoseconds since 1970 (UTC) at which it began.
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    /// Events between two samples.
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    /// Texts for people.
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    /// Type of the values that are shown unless others are asked for.
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// What a value is, and its unit.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// A stack and what fell on it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    /// One for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// A property of a sample: a text, or a number where there is none.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
}

/// An object where it lay in memory.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Mapping {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// A place in the code.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Location {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// More than one where functions are inlined: innermost first, the function that has them last.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

/// A function at a line of its source.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function of a source file.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Function {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}
