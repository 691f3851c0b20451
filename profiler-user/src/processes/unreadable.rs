//! Why an object has no file.

/// Why an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// The process had ended, and no file at its path is the one that was mapped.
    Gone,
    /// bpfprof may not open it.
    NotPermitted,
    /// There is no file behind it.
    NoFile,
    /// The file was written to after it was mapped.
    Overwritten,
    /// It was closed to keep below `RLIMIT_NOFILE`, and is not at its path any more.
    Evicted,
}

impl Unreadable {
    /// The reason in words, and what helps.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Gone => "its file was gone before it could be opened",
            Self::NotPermitted => {
                "bpfprof may not open its file; run it as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
            }
            Self::NoFile => "the kernel gives it no file",
            Self::Overwritten => "its file was overwritten during the recording; record again",
            Self::Evicted => {
                "more objects were seen than files may be open, and it is gone from its path; raise `ulimit -n`"
            }
        }
    }
}
