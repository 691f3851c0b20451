//! Where bpfprof keeps what it need not make or fetch again.

use std::env;
use std::path::PathBuf;

/// For root `/var/cache/bpfprof`, so that no user can plant links in the way of what root writes; else `$XDG_CACHE_HOME/bpfprof` or
/// `~/.cache/bpfprof`. It need not exist.
#[must_use]
pub fn cache_folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return "/var/cache/bpfprof".into();
    }
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").unwrap_or_else(|| "/".into()).join(".cache");
    set("XDG_CACHE_HOME").unwrap_or_else(home).join("bpfprof")
}
