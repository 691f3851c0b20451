//! CPU time of the calling thread: the clock that tells how long a workload really ran.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time this thread has used.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // A CPU clock is never negative.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Computes until this thread has used `time` more, exact to a tenth of a millisecond.
///
/// Different numbers make different code, or the compiler would merge the functions around it into one.
#[inline(always)]
pub fn burn<const NUMBER: u64>(time: Duration) -> u64 {
    let end = thread_cpu_time() + time;
    let mut value = NUMBER;
    while thread_cpu_time() < end {
        // Long beside the system call that reads the clock.
        value = mix::<NUMBER>(value, 20_000);
    }
    value
}

/// A chain of dependent operations that no compiler shortens.
#[inline(always)]
pub fn mix<const NUMBER: u64>(mut value: u64, times: u32) -> u64 {
    let mut round = 0;
    while round < times {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= NUMBER;
        round += 1;
    }
    black_box(value)
}
