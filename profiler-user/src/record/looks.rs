//! When to look for what programs map: side-band records wake nobody before there are many of them.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Looks after a program has begun, or has mapped something: soon, since its libraries are mapped within a millisecond, and then ever later.
#[derive(Debug, Default)]
pub(super) struct Looks {
    next: Option<(Instant, Duration)>,
}

/// The first look. A loader has mapped the libraries of most programs by then.
const FIRST: Duration = Duration::from_millis(1);

/// Looks end here: the end of a slice of time is one too.
const LAST: Duration = Duration::from_millis(32);

impl Looks {
    /// A program has begun, or goes on mapping.
    pub(super) fn begin(&mut self) {
        let due = Instant::now() + FIRST;
        // Another that began before is looked for as well, and not later.
        let due = self.next.map_or(due, |(next, _)| next.min(due));
        self.next = Some((due, FIRST));
    }

    /// Returns when it is time to look; never without a program that has begun.
    pub(super) async fn due(&self) {
        match self.next {
            Some((due, _)) => sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// A look is done.
    pub(super) fn count(&mut self) {
        let pause = self.next.map(|(_, pause)| pause * 2).filter(|pause| *pause <= LAST);
        self.next = pause.map(|pause| (Instant::now() + pause, pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer_and_end() {
        let mut looks = Looks::default();
        looks.begin();
        let mut count = 0;
        while looks.next.is_some() {
            looks.count();
            count += 1;
        }
        assert_eq!(count, 6);
    }
}
