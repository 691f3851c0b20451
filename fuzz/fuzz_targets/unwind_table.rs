//! Compiles the unwind table of anything: `cargo +nightly fuzz run unwind_table`, best with small ELF files as `fuzz/corpus/unwind_table`.

#![no_main]

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use libfuzzer_sys::fuzz_target;

/// The end of the names of the only section that may be compressed.
const DEBUG_FRAME: &[u8] = b"debug_frame\0";

/// What it may become.
const MAX_UNPACKED: usize = 1 << 26;

thread_local! {
    static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| tempfile::tempfile().expect("a temporary file"));
        file.set_len(0).expect("an empty file");
        file.write_all_at(bytes, 0).expect("room for the input");
        if let Ok(table) = bpfprof::unwind::compile(file) {
            // Each row takes a byte of instructions, or an entry of the index; functions share their common entries. A compressed section stands
            // for more.
            let may_be_compressed = bytes.windows(DEBUG_FRAME.len()).any(|bytes| bytes == DEBUG_FRAME);
            let stands_for = if may_be_compressed { bytes.len() + MAX_UNPACKED } else { bytes.len() };
            let most = 16 * stands_for + table.pages().len();
            assert!(table.row_count() <= most, "{} rows of {} bytes", table.row_count(), bytes.len());
            for &page in table.pages() {
                assert!(!table.rows(page).is_empty(), "page {} has no rows", page.number);
            }
        }
    });
});
