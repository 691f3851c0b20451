//! What a measurement may differ from the truth by chance.
//!
//! All margins are 4.5 standard deviations, which a normal variable leaves once in 150,000 times. Sampling in regular
//! intervals scatters less than the independent samples that the standard deviations are computed for.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::report::{Report, Share};

/// bpfprof's rate when none is asked for.
const DEFAULT_HERTZ: f64 = 997.0;
/// Standard deviations that a measurement may lie off.
const DEVIATIONS: f64 = 4.5;
/// Half the width of a 95 % interval, in standard deviations.
const HALF_OF_95_PERCENT: f64 = 1.96;
/// What the kernel's own work around a task may take or leave (interrupts, the clock's granularity), as a share.
const BESIDE_CHANCE: f64 = 0.03;

/// Fails unless the true share lies in the reported interval, widened from 95 % to the margin of all tests.
pub fn share_holds(what: &str, share: Share, truth: f64) -> Result<()> {
    let widening = DEVIATIONS / HALF_OF_95_PERCENT;
    let low = share.value - (share.value - share.low) * widening;
    let high = share.value + (share.high - share.value) * widening;
    ensure!((low..=high).contains(&truth), "{what}: true share {truth:.4}, measured {share:?}");
    Ok(())
}

/// Fails unless `weight_ns`, sampled at the default rate of 997 Hz, is the CPU time that was really used. The standard
/// deviation of a count of n samples is at most √n.
///
/// What a run says to be undelivered is no excuse: idle CPUs count time and may deliver no sample, and this time is not theirs.
pub fn cpu_time_holds(what: &str, weight_ns: u64, truth: Duration) -> Result<()> {
    let truth = truth.as_secs_f64() * 1e9;
    let samples = (truth * DEFAULT_HERTZ / 1e9).max(1.0);
    let margin = truth * (DEVIATIONS / samples.sqrt() + BESIDE_CHANCE);
    ensure!(
        (weight_ns as f64 - truth).abs() <= margin,
        "{what}: {weight_ns} ns measured, {truth:.0} ns used, {margin:.0} ns difference allowed"
    );
    Ok(())
}

/// As [`cpu_time_holds`], for a function with all that it calls.
pub fn function_time_holds(report: &Report, function: &str, truth: Duration) -> Result<()> {
    cpu_time_holds(function, report.function(function)?.total.weight, truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_neither_zero_nor_boundless() {
        let share = Share { value: 0.5, low: 0.48, high: 0.52 };
        assert!(share_holds("f", share, 0.54).is_ok());
        assert!(share_holds("f", share, 0.55).is_err());
        let holds = |ns| cpu_time_holds("f", ns, Duration::from_secs(1)).is_ok();
        assert!(holds(1_150_000_000) && holds(850_000_000));
        assert!(!holds(1_200_000_000) && !holds(800_000_000));
    }
}
