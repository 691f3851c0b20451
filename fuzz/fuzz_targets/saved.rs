//! Reads anything as a saved profile: `cargo +nightly fuzz run saved`, best with pprof files, folded stacks and texts of `perf script` as
//! `fuzz/corpus/saved`. Packed files are as good as unpacked ones and much slower to get into, so the corpus should be unpacked.

#![no_main]

use bpfprof::output::{Format, View, write, write_header};
use bpfprof::saved;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = saved::read(bytes) else { return };
    let mut file = Vec::new();
    write(&profile, Format::Pprof, &View::default(), &mut file).expect("memory takes everything");
    let again = saved::read(&file).expect("what was written can be read");
    assert_eq!(again.header.weight, profile.header.weight);
    for format in [Format::Folded, Format::Json] {
        let [one, other] = [&profile, &again].map(|profile| {
            let mut text = Vec::new();
            write(profile, format, &View::default(), &mut text).expect("memory takes everything");
            text
        });
        assert!(one == other, "{format:?} of what was written differs");
    }
    write_header(&profile.header, &mut std::io::sink()).expect("nothing can fail");
});
