//! User memory through a window.
//!
//! The frames of a stack lie close together, and to read some hundred bytes takes hardly longer than to read a word: a call of a helper
//! costs more than both.

use super::UserMemory;

/// Words of a window: a power of two, so that a mask bounds an index. Frames of optimised Rust take 50 to 200 bytes, so it holds several.
pub const WINDOW_WORDS: usize = 64;

const WINDOW_BYTES: u64 = WINDOW_WORDS as u64 * 8;

/// Memory that can be read by the window.
pub trait WindowSource: UserMemory {
    /// Reads words from this address on. When it says false, a part could not be read, and `words` may hold anything.
    fn fill(&mut self, address: u64, words: &mut [u64; WINDOW_WORDS]) -> bool;
}

/// A piece of the memory of one task, as it was when a word of it was first read.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Address of the first word.
    start: u64,
    state: State,
    words: [u64; WINDOW_WORDS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Filled,
    /// It could not be filled: near the end of what is mapped. From here on words are read alone, since to fail takes long.
    Refused,
}

impl Window {
    /// A window that holds nothing.
    pub const EMPTY: Self = Self { start: 0, state: State::Empty, words: [0; WINDOW_WORDS] };

    /// Forgets what it holds.
    #[inline(always)]
    pub const fn clear(&mut self) {
        self.state = State::Empty;
    }
}

/// Memory read through a window.
#[derive(Debug)]
pub struct Windowed<'w, S> {
    window: &'w mut Window,
    source: S,
}

impl<'w, S: WindowSource> Windowed<'w, S> {
    /// Reads this memory through this window, which holds nothing of other memory.
    #[inline(always)]
    pub const fn new(window: &'w mut Window, source: S) -> Self {
        Self { window, source }
    }

    /// Index of the first of `words` words at this address in the window, which is filled anew if need be.
    #[inline(always)]
    fn find(&mut self, address: u64, words: u64) -> Option<usize> {
        let at = address.wrapping_sub(self.window.start);
        if matches!(self.window.state, State::Filled) && at <= WINDOW_BYTES - words * 8 && at & 7 == 0 {
            return Some((at / 8) as usize);
        }
        if matches!(self.window.state, State::Refused) {
            return None;
        }
        self.window.start = address;
        if self.source.fill(address, &mut self.window.words) {
            self.window.state = State::Filled;
            Some(0)
        } else {
            self.window.state = State::Refused;
            None
        }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.window.words[index & (WINDOW_WORDS - 1)]
    }
}

impl<S: WindowSource> UserMemory for Windowed<'_, S> {
    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        match self.find(address, 1) {
            Some(index) => Some(self.word(index)),
            None => self.source.read(address),
        }
    }

    #[inline(always)]
    fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
        match self.find(address, 2) {
            Some(index) => Some([self.word(index), self.word(index + 1)]),
            None => self.source.read_pair(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffd_0000_0000;
    const WORDS: u64 = 1000;

    /// Words from `BASE` on, each its own number; counts how often it is read.
    struct Counted<'c>(&'c core::cell::Cell<u32>);

    impl Counted<'_> {
        fn byte(address: u64, len: u64) -> Option<u64> {
            let at = address.checked_sub(BASE)?;
            (at + len <= WORDS * 8).then_some(at)
        }
    }

    impl UserMemory for Counted<'_> {
        fn read(&mut self, address: u64) -> Option<u64> {
            self.0.set(self.0.get() + 1);
            Self::byte(address, 8)
        }

        fn read_pair(&mut self, address: u64) -> Option<[u64; 2]> {
            self.0.set(self.0.get() + 1);
            Self::byte(address, 16).map(|at| [at, at + 8])
        }
    }

    impl WindowSource for Counted<'_> {
        fn fill(&mut self, address: u64, words: &mut [u64; WINDOW_WORDS]) -> bool {
            self.0.set(self.0.get() + 1);
            let Some(at) = Self::byte(address, WINDOW_BYTES) else {
                words.fill(u64::MAX);
                return false;
            };
            words.iter_mut().zip(0..).for_each(|(word, number)| *word = at + 8 * number);
            true
        }
    }

    #[test]
    fn what_is_read_is_what_is_there() {
        let reads = core::cell::Cell::new(0);
        let mut window = Window::EMPTY;
        let mut address = BASE;
        for number in 0..20_000_u64 {
            // Ahead by frames, back now and then, off the words, and out of what is mapped; a new walk at times.
            address = match number % 97 {
                0 => BASE + number % 7,
                1 => BASE + WORDS * 8 - 16 + number % 3 * 8,
                2 => number % 2 * u64::MAX,
                step => address.wrapping_add(step % 11 * 8),
            };
            if number % 50 == 0 {
                window.clear();
            }
            let mut memory = Windowed::new(&mut window, Counted(&reads));
            assert_eq!(memory.read(address), Counted::byte(address, 8), "{address:#x}");
            let pair = Counted::byte(address, 16).map(|at| [at, at + 8]);
            assert_eq!(memory.read_pair(address), pair, "{address:#x}");
        }
    }

    #[test]
    fn words_close_together_are_read_once() {
        let reads = core::cell::Cell::new(0);
        let mut window = Window::EMPTY;
        for word in 0..WINDOW_WORDS as u64 - 1 {
            let mut memory = Windowed::new(&mut window, Counted(&reads));
            assert_eq!(memory.read_pair(BASE + 8 * word), Some([8 * word, 8 * word + 8]));
        }
        assert_eq!(reads.get(), 1);
        let mut memory = Windowed::new(&mut window, Counted(&reads));
        assert_eq!(memory.read_pair(BASE + WINDOW_BYTES - 8), Some([WINDOW_BYTES - 8, WINDOW_BYTES]));
        assert_eq!(reads.get(), 2);
    }

    #[test]
    fn near_the_end_of_memory_one_failure_is_enough() {
        let reads = core::cell::Cell::new(0);
        let mut window = Window::EMPTY;
        for word in WORDS - 10..WORDS {
            let mut memory = Windowed::new(&mut window, Counted(&reads));
            assert_eq!(memory.read(BASE + 8 * word), Some(8 * word));
        }
        assert_eq!(reads.get(), 11);
    }
}
