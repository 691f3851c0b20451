//! What the intervals and the attributions promise, held against simulated programs whose truth is known. Seeds are fixed.
//!
//! `cargo test -p bpfprof --test statistics -- --nocapture --test-threads=1` prints the tables of `docs/statistics.md`.

mod attribution;
mod diff;
mod lockstep;
mod program;
mod random;
mod repeat;
mod sampling;

/// Per cent.
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}
