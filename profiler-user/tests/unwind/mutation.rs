//! Damaged objects: no panic, and no more rows or time than the bytes of the file can stand for.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use bpfprof::unwind::compile;
use object::LittleEndian;
use object::elf::{FileHeader64, PT_GNU_EH_FRAME};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::elf_image::ElfImage;
use crate::objects;
use crate::random::Random;

const ROUNDS: u32 = 3000;

/// Places where damage matters, as ranges of the file.
struct Sore {
    from: u64,
    len: u64,
}

#[test]
fn damaged_objects_cost_no_more_than_sound_ones() {
    let files = objects::always_there();
    // The loader is small, so that most rounds are quick; the C library has more kinds of rules.
    damage(&files[1], ROUNDS);
    damage(&files[0], ROUNDS / 20);
}

fn damage(path: &Path, rounds: u32) {
    let sound = fs::read(path).expect("a file that can be read");
    let sore = sore_places(&sound, path);
    let mut random = Random::new(0x0b9f_0002);
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&sound).expect("room for it");
    let mut compiled = 0;
    for round in 0..rounds {
        let damaged: Vec<(u64, Vec<u8>)> =
            (0..1 + random.below(4)).map(|_| wound(&sore, &mut random)).collect();
        for (at, bytes) in &damaged {
            file.write_all_at(bytes, *at).expect("room for it");
        }
        if let Ok(table) = compile(&file) {
            compiled += 1;
            let pages = table.pages();
            let span = pages.last().map_or(0, |last| last.number - pages[0].number);
            assert!(table.row_count() <= 2 * sound.len(), "round {round}: {} rows", table.row_count());
            assert!(span <= 1 << 17, "round {round}: {span} pages");
        }
        for (at, bytes) in &damaged {
            let at = *at as usize;
            let end = sound.len().min(at + bytes.len());
            file.write_all_at(&sound[at..end], at as u64).expect("room for it");
            file.set_len(sound.len() as u64).expect("room for it");
        }
    }
    eprintln!("{}: {compiled} of {rounds} damaged objects still have a table", path.display());
    assert!(compiled > rounds / 10, "the damage leaves nothing to compile: {compiled} of {rounds}");
}

/// A few bytes, and where they go.
fn wound(sore: &[Sore], random: &mut Random) -> (u64, Vec<u8>) {
    let Sore { from, len } = random.pick(sore);
    let at = from + random.below(*len);
    let bytes = match random.below(4) {
        0 => vec![random.next() as u8],
        1 => random.next().to_le_bytes().to_vec(),
        // Lengths and addresses at the edges of their types.
        2 => (*random.pick(&[0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 1 << 40]))
            .to_le_bytes()
            .to_vec(),
        _ => (*random.pick(&[0_u32, u32::MAX, i32::MAX as u32, i32::MIN as u32])).to_le_bytes().to_vec(),
    };
    (at, bytes)
}

fn sore_places(sound: &[u8], path: &Path) -> Vec<Sore> {
    let header = FileHeader64::<LittleEndian>::parse(sound).expect("an ELF header");
    let programs = header.program_headers(LittleEndian, sound).expect("program headers");
    let table = Sore { from: header.e_phoff(LittleEndian), len: 56 * programs.len() as u64 };
    let index = programs.iter().find(|program| program.p_type(LittleEndian) == PT_GNU_EH_FRAME);
    let index = index.expect("an index of functions");
    let from = index.p_offset(LittleEndian);
    let index_len = index.p_filesz(LittleEndian);
    let frames = ElfImage::read(path).eh_frame.data.len() as u64;
    let frames_from = from + index_len;
    // One in four each: headers, the beginning of the index, all of it, the call-frame information behind it.
    vec![
        table,
        Sore { from, len: 64 },
        Sore { from, len: index_len },
        Sore { from: frames_from, len: frames.min(sound.len() as u64 - frames_from) },
    ]
}
