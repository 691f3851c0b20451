//! Burns CPU time in tasks of a tokio runtime with several threads.
//!
//! `tokio_tasks WORKERS SECONDS`: so many worker threads, and as many tasks that burn SECONDS of CPU time each, in small pieces
//! between which they yield.

use std::future::Future;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bpfprof_tests::cpu_time::burn;

/// CPU time between two yields.
const PIECE: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workers, seconds] = arguments.as_slice() else { bail!("usage: tokio_tasks WORKERS SECONDS") };
    let workers: usize = workers.parse().context("WORKERS")?;
    let time = Duration::from_secs_f64(seconds.parse().context("SECONDS")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build()?;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(outer(time))).collect();
        for task in tasks {
            task.await?;
        }
        Ok(())
    })
}

async fn outer(time: Duration) {
    let mut left = time;
    while left > Duration::ZERO {
        middle().await;
        left = left.saturating_sub(PIECE);
        tokio::task::yield_now().await;
    }
}

/// Boxed, so that it is polled through a table of functions.
fn middle() -> Box<dyn Future<Output = ()> + Send + Unpin> {
    Box::new(Box::pin(async {
        inner(PIECE);
    }))
}

#[inline(never)]
fn inner(time: Duration) {
    black_box(burn::<1>(time));
}
