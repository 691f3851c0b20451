//! When periods are drawn anew.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Draws of random periods. A program whose turns are as long as a period meets it at the same place until the next, so that all these samples
/// tell no more than one; and each draw begins a period anew, so that with many draws there would be no samples.
#[derive(Debug)]
pub(super) struct Draws {
    /// Pause on average, and when it ends; `None` where nothing is drawn.
    next: Option<(Duration, Instant)>,
}

/// The shortest pause on average: more draws cost more than they tell.
const SHORTEST: Duration = Duration::from_millis(50);

/// The longest: where samples are rare, the kernel's own periods must not stay for minutes.
const LONGEST: Duration = Duration::from_secs(10);

/// Periods from draw to draw, on average and at least.
const PERIODS: u32 = 10;

/// Pauses are random too: a program may do the same as often as periods are drawn.
const SPREAD: f64 = 0.3;

impl Draws {
    /// Draws for events of this frequency, or a higher one, whose first periods were drawn just now.
    pub(super) fn after_first(lowest: Option<NonZeroU32>) -> Self {
        let pause =
            |hertz: NonZeroU32| (Duration::from_secs(1) * PERIODS / hertz.get()).clamp(SHORTEST, LONGEST);
        let mut draws = Self { next: lowest.map(|hertz| (pause(hertz), Instant::now())) };
        draws.count();
        draws
    }

    /// Returns when it is time to draw; never where nothing is drawn.
    pub(super) async fn due(&self) {
        match self.next {
            Some((_, next)) => sleep_until(next).await,
            None => std::future::pending().await,
        }
    }

    /// Periods were drawn.
    pub(super) fn count(&mut self) {
        if let Some((pause, next)) = &mut self.next {
            *next = Instant::now() + pause.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * fastrand::f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_periods_end_between_two_draws() {
        for hertz in [1, 10, 99, 997, 50_000] {
            let frequency = NonZeroU32::new(hertz).unwrap();
            let now = Instant::now();
            let (_, next) = Draws::after_first(Some(frequency)).next.unwrap();
            let periods = (next - now).as_secs_f64() * f64::from(hertz);
            assert!(periods >= f64::from(PERIODS) * (1.0 - SPREAD), "{hertz}: {periods}");
        }
        assert!(Draws::after_first(None).next.is_none());
    }
}
