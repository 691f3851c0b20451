//! All BPF programs, maps and links of the machine: what a run must not leave behind.

use std::collections::BTreeSet;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The identifiers of one moment. The kernel gives each object a new one, so those that were not there before came since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BpfObjects {
    ids: BTreeSet<(Kind, u32)>,
}

/// What lists the kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Programs.
    Program,
    /// Maps.
    Map,
    /// Links.
    Link,
}

impl BpfObjects {
    /// Lists those that are there now. Needs `CAP_SYS_ADMIN`.
    pub fn now() -> Result<Self> {
        let mut ids = BTreeSet::new();
        for kind in [Kind::Program, Kind::Map, Kind::Link] {
            let mut id = 0;
            while let Some(next) = kind.next_id(id).with_context(|| format!("listing {kind:?}s"))? {
                ids.insert((kind, next));
                id = next;
            }
        }
        Ok(Self { ids })
    }

    /// Those that came after `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self { ids: self.ids.difference(&before.ids).copied().collect() }
    }

    /// How many of a kind there are.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.ids.iter().filter(|(of, _)| *of == kind).count()
    }

    /// Which of these are still there after they had up to 10 s to go: the kernel frees them some time after the last reference.
    pub fn that_stay(&self) -> Result<Self> {
        let started = Instant::now();
        loop {
            let now = Self::now()?;
            let stay = Self { ids: self.ids.intersection(&now.ids).copied().collect() };
            if stay.ids.is_empty() || started.elapsed() > Duration::from_secs(10) {
                return Ok(stay);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Kind {
    /// The smallest identifier above `id`.
    fn next_id(self, id: u32) -> io::Result<Option<u32>> {
        // enum bpf_cmd of include/uapi/linux/bpf.h.
        let command = match self {
            Self::Program => 11_i32,
            Self::Map => 12,
            Self::Link => 31,
        };
        // The member of `union bpf_attr` for these commands: start_id, next_id, open_flags.
        let mut attribute = [id, 0, 0];
        // SAFETY: the kernel reads and writes the three words of `attribute` and no more, as its size says.
        let answer =
            unsafe { libc::syscall(libc::SYS_bpf, command, attribute.as_mut_ptr(), size_of_val(&attribute)) };
        if answer == 0 {
            return Ok(Some(attribute[1]));
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
    }
}
