//! Running a parser on what a stranger wrote, so that it costs the names of one object at worst.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Why guarded work gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// It panicked.
    #[error("its parser failed")]
    Panicked,
    /// It took longer than it was allowed to.
    #[error("reading it took too long")]
    TimedOut,
    /// A file that it had mapped was cut short.
    #[error("it was truncated while it was read")]
    Truncated,
    /// There is no thread for it.
    #[error("no thread could be started to read it")]
    NoThread,
}

/// Demanglers and DWARF readers recurse.
const STACK_BYTES: usize = 32 << 20;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static TRUNCATED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work in a thread of its own. Work that exceeds its time goes on unseen until the process ends.
pub(super) fn run<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    install();
    let (sender, receiver) = channel();
    let guarded = move || {
        GUARDED.set(true);
        let result = catch_unwind(AssertUnwindSafe(work)).map_err(|_: Box<dyn Any + Send>| Failure::Panicked);
        // What was read of a truncated file is zeros from somewhere on.
        let result = if TRUNCATED.get() { Err(Failure::Truncated) } else { result };
        // Nobody may be waiting any more.
        let _ = sender.send(result);
    };
    let thread = thread::Builder::new().name("symbols".into()).stack_size(STACK_BYTES);
    thread.spawn(guarded).map_err(|_| Failure::NoThread)?;
    match receiver.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(Failure::TimedOut),
        Err(RecvTimeoutError::Disconnected) => Err(Failure::Panicked),
    }
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // The first call may open a file, which the handler must not.
        let _ = rustix::param::page_size();
        silence_guarded_panics();
        survive_truncation();
    });
}

fn silence_guarded_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            usual(panic);
        }
    }));
}

/// Reading a mapped page behind the end of a file raises SIGBUS, and anybody who may write to a file may cut it short.
fn survive_truncation() {
    // SAFETY: all bytes zero is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and calls nothing that is unsafe in a handler.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) };
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a valid structure.
    let info = unsafe { &*info };
    // SAFETY: for SIGBUS the union holds an address.
    let address = unsafe { info.si_addr() };
    if !GUARDED.get() || !replace_page(address as usize) {
        // The access is tried again, and ends the process as it would have.
        // SAFETY: `signal` may be called in a handler (signal-safety(7)).
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
    TRUNCATED.set(true);
}

/// Puts a page of zeros where one of the file is missing.
fn replace_page(address: usize) -> bool {
    // Read from memory, as a handler must; huge pages of files behave like the base pages.
    let page_size = rustix::param::page_size();
    let page = address & !(page_size - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: guarded code reads nothing but read-only mappings of files at this address: no other memory raises SIGBUS.
    let mapped = unsafe { libc::mmap(page as *mut libc::c_void, page_size, libc::PROT_READ, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn panics_and_endless_work_end_with_a_reason() {
        assert_eq!(run(LONG, || 7), Ok(7));
        assert_eq!(run(LONG, || -> u32 { panic!("malformed") }), Err(Failure::Panicked));
        assert_eq!(run(Duration::from_millis(1), || thread::sleep(LONG)), Err(Failure::TimedOut));
    }

    #[test]
    fn a_file_cut_short_while_it_is_mapped_does_not_kill() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 1 << 16]).unwrap();
        // SAFETY: the file is cut short below, which is what this test is about; the guard answers for it.
        let mapping = unsafe { memmap2::Mmap::map(&file) }.unwrap();
        file.set_len(0).unwrap();
        let sum = run(LONG, move || mapping.iter().map(|&byte| u64::from(byte)).sum::<u64>());
        assert_eq!(sum, Err(Failure::Truncated));
    }
}
