//! Where the value of a PMU's term goes: `config:0-7,32-35`, as the files in a PMU's `format` folder say
//! (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).

use std::ops::RangeInclusive;
use std::str::FromStr;

/// The words of `perf_event_attr` that a PMU gives a meaning to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Configs(pub(super) [u64; 4]);

/// A term's bits in one of the words, the lowest bits of the value first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    word: usize,
    bits: Vec<RangeInclusive<u32>>,
}

impl Format {
    /// A whole word: the terms `config`, `config1` … that every PMU has.
    pub(super) fn of_word(name: &str) -> Option<Self> {
        let word = WORDS.iter().position(|&word| word == name)?;
        Some(Self { word, bits: vec![0..=HIGHEST_BIT] })
    }

    /// How many bits a value may have.
    pub(super) fn width(&self) -> u32 {
        self.bits.iter().map(|bits| bits.end() - bits.start() + 1).sum()
    }

    /// Puts the value into its bits, or gives `None` when it has more of them.
    pub(super) fn put(&self, value: u64, configs: &mut Configs) -> Option<()> {
        if self.width() <= HIGHEST_BIT && value >> self.width() != 0 {
            return None;
        }
        let word = configs.0.get_mut(self.word)?;
        let mut rest = value;
        for bits in &self.bits {
            let width = bits.end() - bits.start() + 1;
            let ones = u64::MAX >> (HIGHEST_BIT + 1 - width);
            *word &= !(ones << bits.start());
            *word |= (rest & ones) << bits.start();
            rest = rest.checked_shr(width).unwrap_or(0);
        }
        Some(())
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (word, bits) = text.trim_end().split_once(':').ok_or(())?;
        let word = WORDS.iter().position(|&known| known == word).ok_or(())?;
        let bits = bits.split(',').map(parse_bits).collect::<Option<Vec<_>>>().ok_or(())?;
        let format = Self { word, bits };
        if format.width() > HIGHEST_BIT + 1 { Err(()) } else { Ok(format) }
    }
}

const WORDS: [&str; 4] = ["config", "config1", "config2", "config3"];
const HIGHEST_BIT: u32 = 63;

fn parse_bits(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last <= HIGHEST_BIT).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(format: &str, value: u64) -> Option<[u64; 4]> {
        let mut configs = Configs([u64::MAX << 60, 0, 0, 0]);
        format.parse::<Format>().unwrap().put(value, &mut configs)?;
        Some(configs.0)
    }

    #[test]
    fn values_go_to_their_bits_and_nowhere_else() {
        const KEPT: u64 = 0xf << 60;
        assert_eq!(put("config:0-7\n", 0xd1), Some([KEPT | 0xd1, 0, 0, 0]));
        assert_eq!(put("config:8-15", 0x20), Some([KEPT | 0x2000, 0, 0, 0]));
        assert_eq!(put("config1:3", 1), Some([KEPT, 8, 0, 0]));
        assert_eq!(put("config2:0-63", u64::MAX), Some([KEPT, 0, u64::MAX, 0]));
        // An event select of AMD.
        assert_eq!(put("config:0-7,32-35", 0x1ab), Some([KEPT | 0x1_0000_00ab, 0, 0, 0]));
        assert_eq!(put("config:0-63", 5), Some([5, 0, 0, 0]));
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        assert_eq!(put("config:0-7", 0x100), None);
        assert_eq!(put("config:0-7,32-35", 0x1000), None);
        assert_eq!(put("config3:63", 2), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "config", "config:", "config9:0", "config:64", "config:3-1", "config:0-63,0", "config:a"]
        {
            assert_eq!(text.parse::<Format>(), Err(()), "{text}");
        }
        assert_eq!(Format::of_word("config4"), None);
        assert_eq!(Format::of_word("config3"), "config3:0-63".parse().ok());
    }
}
