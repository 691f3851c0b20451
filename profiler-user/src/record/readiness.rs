//! Waiting for a descriptor to become readable.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

/// Watches a descriptor in the event loop.
pub(super) fn watch<T: AsFd + AsRawFd>(fd: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: what owns or borrows a descriptor keeps it the same and open until the returned value is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    watched.map_err(Into::into)
}

/// Waits until a descriptor is readable, and at least until this time.
///
/// Until then it is not watched either: each of its events would wake this process.
pub(super) async fn readable_from(earliest: Instant, fd: BorrowedFd<'_>) -> io::Result<()> {
    sleep_until(earliest).await;
    watch(fd)?.readable().await.map(drop)
}
