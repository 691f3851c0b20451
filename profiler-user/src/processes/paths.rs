//! What the kernel's name of a mapping says.

/// Whether the kernel's name of a mapping stands for memory without a file: heaps, stacks, code made at run time.
pub(super) fn is_anonymous(path: &[u8]) -> bool {
    let anonymous =
        [&b"//anon"[..], b"[heap]", b"[stack]", b"[anon", b"/dev/zero", b"/anon_hugepage", b"/SYSV"];
    path.is_empty() || anonymous.iter().any(|name| path.starts_with(name))
}

/// Whether a file of this path lives in memory only: an object, or code made at run time under a name.
pub(super) fn is_in_memory(path: &[u8]) -> bool {
    path.starts_with(MEMFD) || path.starts_with(b"/dev/shm/")
}

/// What an object at this path is called: the last part of it.
pub(crate) fn short_name(path: &[u8]) -> &[u8] {
    if path.starts_with(MEMFD) {
        return &path[1..];
    }
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// What the kernel puts before the name of a file made by `memfd_create(2)`.
const MEMFD: &[u8] = b"/memfd:";
