//! The hash by which equal samples find each other in the kernel's tables.

/// Hash of a sequence of 64-bit words, built one word at a time.
///
/// Each step is a bijection of the state, so no step loses what came before. Two different stacks of one table meet with a
/// chance of about n²/2⁶⁵ for n stacks: less than one in 10¹² for the few thousand stacks of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordHash(u64);

impl WordHash {
    /// The hash of no word.
    pub const EMPTY: Self = Self(0x243f_6a88_85a3_08d3);

    /// Adds a word.
    #[inline(always)]
    #[must_use]
    pub const fn add(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 32))
    }

    /// The hash, never 0: a slot whose hash is 0 is free.
    #[inline(always)]
    #[must_use]
    pub const fn finish(self) -> u64 {
        let mixed = self.0.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ (mixed >> 32)) | 1
    }
}

#[cfg(test)]
mod tests {
    use super::WordHash;

    fn hash(words: &[u64]) -> u64 {
        words.iter().fold(WordHash::EMPTY, |hash, &word| hash.add(word)).finish()
    }

    #[test]
    fn order_length_and_zeros_matter() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[]), hash(&[0]));
        assert_ne!(hash(&[0]), hash(&[0, 0]));
    }

    #[test]
    fn neighbouring_stacks_spread_over_the_slots() {
        let mut buckets = [0u32; 256];
        for caller in 0..64 {
            for leaf in 0..64 {
                buckets[(hash(&[0x5555_0000 + leaf * 4, 0x5555_1000 + caller * 16]) >> 8) as usize % 256] +=
                    1;
            }
        }
        assert!(buckets.iter().all(|&n| n < 48), "{buckets:?}");
    }
}
