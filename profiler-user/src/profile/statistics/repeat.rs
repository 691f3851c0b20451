//! What another run would give: the variance between slices of this run.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::Estimate;

/// What one slice of the run added to a quantity and to what it is measured by.
///
/// A share has a part and the whole, a ratio its numerator and denominator, a rate the amount and the seconds of the slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// The quantity; not negative.
    pub amount: f64,
    /// What it is measured by; not negative.
    pub base: f64,
}

/// A quantity with the interval that should hold what long runs give on average.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Repeat {
    /// Value of this run: all amounts ÷ all bases.
    pub value: f64,
    /// Lower end of the 95 % interval; not negative.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Variance of `value`.
    pub variance: f64,
    /// Degrees of freedom of the variance: blocks that tell as much as these of equal base, less one.
    pub degrees: f64,
    /// Number of blocks.
    pub blocks: usize,
    /// Slices in a block; where the blocks do not come out even, some have one more.
    pub block_length: usize,
}

/// Why a run says nothing about the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooShort {
    /// The quantity was measured in too few slices.
    #[error("measured in too few time slices: {FEWEST_BLOCKS} or more are needed; record for longer")]
    FewSlices,
    /// The program's phases are longer than an eighth of the run.
    #[error(
        "the program's phases are too long for this run: fewer than {FEWEST_BLOCKS} independent blocks; record for longer"
    )]
    LongPhases,
}

/// Fewer blocks give no variance worth the name: Student's t is 2.36 at seven degrees of freedom, and grows fast below.
pub const FEWEST_BLOCKS: usize = 8;

/// More blocks than this gain nothing, and fewer are longer, so less correlated: with 31 blocks t is 4 % above the normal quantile.
///
/// Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30 (1982), finds 10 to 30 enough.
const MOST_BLOCKS: usize = 31;

/// Standard errors of autocorrelation from which on blocks are doubled. A lower limit would double more often and hold the truth no more often.
const LENGTHEN_ABOVE: f64 = 1.0;
/// Standard errors from which on blocks that cannot be doubled are refused: so are one in a hundred that do not correlate.
const REFUSE_ABOVE: f64 = 1.5;

/// The quantity with its 95 % interval for other runs of the same program, from slices of equal length.
///
/// Slices are merged into blocks, at most 31 of equal length, and the length is doubled until neighbouring blocks no longer correlate: until the lag-1
/// autocorrelation of what the blocks deviate is below one standard error, 1/√blocks. Where no further doubling is possible, one and a half will do. The
/// variance is the jackknife's for a ratio of sums (Cochran, *Sampling Techniques*, 1977, §6.17), the interval Student's t.
///
/// # Errors
///
/// [`TooShort`] if there are fewer than [`FEWEST_BLOCKS`] blocks, those of little base counting for less (Kish), or if so few still correlate.
pub fn repeat(slices: &[Slice]) -> Result<Repeat, TooShort> {
    let all = sum(slices);
    if !(all.base > 0.0 && all.base.is_finite() && all.amount.is_finite()) {
        return Err(TooShort::FewSlices);
    }
    let mut length = slices.len().div_ceil(MOST_BLOCKS).max(1);
    let mut blocks = merge(slices, length);
    if effective(&blocks) < FEWEST_BLOCKS as f64 {
        return Err(TooShort::FewSlices);
    }
    let value = all.amount / all.base;
    loop {
        let errors = autocorrelation(&blocks, value) * (blocks.len() as f64).sqrt();
        if errors <= LENGTHEN_ABOVE {
            break;
        }
        let longer = merge(slices, 2 * length);
        if effective(&longer) < FEWEST_BLOCKS as f64 {
            if errors > REFUSE_ABOVE {
                return Err(TooShort::LongPhases);
            }
            break;
        }
        (blocks, length) = (longer, 2 * length);
    }
    let variance = jackknife(&blocks, all);
    let degrees = effective(&blocks) - 1.0;
    let half = quantile(degrees) * variance.sqrt();
    Ok(Repeat {
        value,
        low: (value - half).max(0.0),
        high: value + half,
        variance,
        degrees,
        blocks: blocks.len(),
        block_length: length,
    })
}

impl Repeat {
    /// Value and interval alone.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.value, low: self.low, high: self.high }
    }

    /// The same in a unit of which `factor` make one of the old; `factor` is positive.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            variance: self.variance * factor * factor,
            ..self
        }
    }
}

/// Student's t for two-sided 95 %; `degrees` is at least 1.
pub(super) fn quantile(degrees: f64) -> f64 {
    student(degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// Student's distribution; `None` unless `degrees` is positive.
pub(super) fn student(degrees: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees).ok()
}

fn sum(slices: &[Slice]) -> Slice {
    slices.iter().fold(Slice::default(), |sum, slice| Slice {
        amount: sum.amount + slice.amount,
        base: sum.base + slice.base,
    })
}

/// Blocks of `length` slices; the slices left over go one each to some of them.
fn merge(slices: &[Slice], length: usize) -> Vec<Slice> {
    let count = slices.len() / length;
    let border = |block: usize| block * slices.len() / count;
    (0..count).map(|block| sum(&slices[border(block)..border(block + 1)])).collect()
}

/// Number of blocks of equal base that would tell as much: (Σb)² ÷ Σb² (Kish 1965).
fn effective(blocks: &[Slice]) -> f64 {
    let squares: f64 = blocks.iter().map(|block| block.base * block.base).sum();
    let base = sum(blocks).base;
    if squares > 0.0 { base * base / squares } else { 0.0 }
}

/// How much neighbouring blocks deviate to the same side: the lag-1 autocorrelation, 0 on average and about 1/√blocks wide if they do not.
fn autocorrelation(blocks: &[Slice], value: f64) -> f64 {
    let deviations: Vec<f64> = blocks.iter().map(|block| block.amount - value * block.base).collect();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let squares: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Variance of Σamount ÷ Σbase from what leaving out each block in turn changes.
fn jackknife(blocks: &[Slice], all: Slice) -> f64 {
    let (count, value) = (blocks.len() as f64, all.amount / all.base);
    let changes = blocks.iter().map(|block| (block.amount - value * block.base) / (all.base - block.base));
    (count - 1.0) / count * changes.map(|change| change * change).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(amounts: &[f64], base: f64) -> Vec<Slice> {
        amounts.iter().map(|&amount| Slice { amount, base }).collect()
    }

    #[test]
    fn quantiles_agree_with_published_tables() {
        for (degrees, expected) in [(1.0, 12.7062), (7.0, 2.3646), (15.0, 2.1314), (30.0, 2.0423)] {
            assert!((quantile(degrees) - expected).abs() < 1e-4, "{degrees}: {}", quantile(degrees));
        }
    }

    #[test]
    fn equal_bases_give_the_interval_of_a_mean() {
        // Mean 6, sum of squared deviations 40, so the variance of the mean is 40 ÷ 9 ÷ 10.
        let run = repeat(&slices(&[8.0, 4.0, 4.0, 8.0, 4.0, 8.0, 8.0, 4.0, 8.0, 4.0], 1.0)).unwrap();
        assert_eq!((run.blocks, run.block_length), (10, 1));
        assert!((run.value - 6.0).abs() < 1e-9 && (run.variance - 4.0 / 9.0).abs() < 1e-9, "{run:?}");
        assert!((run.high - (6.0 + 2.262_157 * 2.0 / 3.0)).abs() < 1e-4 && run.low < 6.0, "{run:?}");
    }

    #[test]
    fn phases_lengthen_the_blocks() {
        let phases: Vec<f64> = (0..640).map(|slice| f64::from(slice / 64 % 2)).collect();
        let run = repeat(&slices(&phases, 1.0)).unwrap();
        assert_eq!((run.blocks, run.block_length), (15, 42), "30 blocks of 21 slices correlate");
        assert!((run.value - 0.5).abs() < 1e-9);
    }

    #[test]
    fn too_little_is_refused() {
        assert_eq!(repeat(&[]), Err(TooShort::FewSlices));
        assert_eq!(repeat(&slices(&[1.0; 7], 1.0)), Err(TooShort::FewSlices));
        assert_eq!(repeat(&slices(&[0.0; 50], 0.0)), Err(TooShort::FewSlices));
        assert_eq!(repeat(&slices(&[f64::NAN; 50], 1.0)), Err(TooShort::FewSlices));
        let mut alone = slices(&[0.0; 50], 0.0);
        alone[3] = Slice { amount: 5.0, base: 9.0 };
        assert_eq!(repeat(&alone), Err(TooShort::FewSlices));
        let trend: Vec<f64> = (0..50).map(f64::from).collect();
        assert_eq!(repeat(&slices(&trend, 100.0)), Err(TooShort::LongPhases));
    }

    #[test]
    fn a_constant_has_no_width() {
        let run = repeat(&slices(&[3.0; 64], 2.0)).unwrap();
        assert_eq!((run.low, run.value, run.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn blocks_take_all_slices() {
        let merged = merge(&slices(&[1.0; 53], 1.0), 6);
        assert_eq!(merged.len(), 8);
        assert!((sum(&merged).amount - 53.0).abs() < 1e-9);
        assert!(merged.iter().all(|block| (6.0..=7.0).contains(&block.amount)));
    }
}
