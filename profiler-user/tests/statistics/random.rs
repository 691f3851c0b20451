//! Random numbers that are the same on every host and in every run.

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
pub(crate) struct Random(u64);

impl Random {
    /// A generator that begins at `seed`, which is not 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 up to and without 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// How many events of a Poisson process happen where `mean` are expected.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        let mut at = self.exponential(1.0);
        let mut count = 0;
        while at < mean {
            at += self.exponential(1.0);
            count += 1;
        }
        count
    }
}
