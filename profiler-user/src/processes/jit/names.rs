//! Names of code made at run time, each once.

use indexmap::IndexSet;

use crate::printable::printable_name;

/// A name in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JitName(u32);

/// Text of all names that is kept, in bytes. A large JVM has some ten megabytes.
const MAX_BYTES: usize = 64 << 20;

/// All names that were seen. Bounded: names after the bound are read again at the end, where they are asked for.
#[derive(Default)]
pub(super) struct Names {
    texts: IndexSet<Box<str>>,
    bytes: usize,
}

impl Names {
    /// The number of a name; `None` when there are too many.
    pub(super) fn number(&mut self, text: &str) -> Option<JitName> {
        let text = printable_name(text);
        if let Some(known) = self.texts.get_index_of(&*text) {
            return u32::try_from(known).ok().map(JitName);
        }
        if self.bytes.saturating_add(text.len()) > MAX_BYTES {
            return None;
        }
        self.bytes += text.len() + size_of::<Box<str>>();
        u32::try_from(self.texts.insert_full((&*text).into()).0).ok().map(JitName)
    }

    /// Its text.
    pub(super) fn text(&self, name: JitName) -> &str {
        self.texts.get_index(name.0 as usize).map_or("", |text| text)
    }
}
