//! Which name memory has, and which it will have.

use std::ops::Range;
use std::sync::Arc;

use rangemap::RangeMap;

use super::names::JitName;
use crate::types::UserAddress;

/// Ranges with names that are kept for one process. V8 and large JVMs have some hundred thousand.
const MAX_RANGES: usize = 1 << 20;

/// Names by address: those that hold, and those that were seen since.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Shared with the processes that were forked.
    names: Arc<RangeMap<u64, JitName>>,
    news: RangeMap<u64, JitName>,
    /// Whether the news are all there is: their map took the place of another.
    replaces: bool,
    /// Ranges that this process has added, and not got from another.
    added: usize,
}

impl Known {
    /// The name that holds.
    pub(super) fn find(&self, address: UserAddress) -> Option<JitName> {
        self.names.get(&address.0).copied()
    }

    /// The name among the news.
    pub(super) fn find_new(&self, address: UserAddress) -> Option<JitName> {
        self.news.get(&address.0).copied()
    }

    /// Adds to the news.
    pub(super) fn add(&mut self, range: Range<u64>, name: JitName) {
        if self.added < MAX_RANGES && !range.is_empty() {
            self.added += 1;
            self.news.insert(range, name);
        }
    }

    /// What comes from now on is a whole map, and nothing of the one before holds any more.
    pub(super) fn replace(&mut self) {
        self.news = RangeMap::new();
        self.replaces = true;
        self.added = 0;
    }

    /// Whether there is no name at all.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.news.is_empty()
    }

    /// Lets the news hold.
    pub(super) fn take_news(&mut self) {
        // Most processes have none at most drains.
        if self.news.is_empty() && !self.replaces {
            return;
        }
        if self.replaces {
            self.names = Arc::default();
            self.replaces = false;
        }
        if self.names.is_empty() {
            self.names = Arc::new(std::mem::take(&mut self.news));
        } else if !self.news.is_empty() {
            Arc::make_mut(&mut self.names).extend(std::mem::take(&mut self.news));
        }
        // Later ranges take the place of earlier ones.
        self.added = self.added.min(self.names.len());
    }

    /// Ranges that are kept for this process alone.
    pub(super) fn own_ranges(&self) -> usize {
        self.added
    }

    /// All of it, as a forked process has it.
    pub(super) fn with_news(&self) -> Self {
        let mut all = self.clone();
        all.take_news();
        all.added = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::*;

    #[test]
    fn news_hold_once_they_are_taken() {
        let mut names = Names::default();
        let (one, two) = (names.number("one").unwrap(), names.number("two").unwrap());
        let mut known = Known::default();
        known.add(0x1000..0x2000, one);
        assert_eq!((known.find(UserAddress(0x1000)), known.find_new(UserAddress(0x1000))), (None, Some(one)));
        known.take_news();
        known.add(0x1800..0x2800, two);
        let child = known.with_news();
        assert_eq!(known.find(UserAddress(0x1900)), Some(one));
        assert_eq!(child.find(UserAddress(0x1900)), Some(two));
        assert_eq!(child.find(UserAddress(0x1000)), Some(one));
        known.replace();
        known.add(0x5000..0x6000, two);
        assert_eq!(known.find(UserAddress(0x1900)), Some(one), "until the news are taken");
        known.take_news();
        assert_eq!(known.find(UserAddress(0x1900)), None);
        assert_eq!(child.find(UserAddress(0x1900)), Some(two), "a child keeps what it had");
    }
}
