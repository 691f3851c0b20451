//! Going before other work while samples come in.
//!
//! Little is to be done then, but what is late costs stacks: a library that was just mapped, a table that was just compiled. On a busy machine
//! it would wait behind the very programs that are profiled.

use rustix::process::{getpriority_process, setpriority_process};

/// Nine tenths of a CPU that an ordinary program wants too.
const NICENESS: i32 = -10;

/// The calling thread goes before others until this is dropped, if that is allowed.
pub(crate) struct Precedence {
    former: Option<i32>,
}

impl Precedence {
    /// Begins. Threads and commands that are started meanwhile inherit it.
    pub(crate) fn take() -> Self {
        let former = getpriority_process(None).ok().filter(|former| *former > NICENESS);
        Self { former: former.filter(|_| setpriority_process(None, NICENESS).is_ok()) }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if let Some(former) = self.former {
            // Lower precedence is granted to everybody.
            let _ = setpriority_process(None, former);
        }
    }
}
