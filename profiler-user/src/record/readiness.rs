//! Waiting for a descriptor to become readable.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::time::{Instant, sleep_until};

/// Watches a descriptor in the event loop.
pub(super) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays the same and open until the returned value is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    watched.map_err(Into::into)
}

/// Waits until a descriptor is readable, and at least until this time.
pub(super) async fn readable_from(
    earliest: Instant,
    watched: &AsyncFd<OwnedFd>,
) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
    sleep_until(earliest).await;
    watched.readable().await
}
