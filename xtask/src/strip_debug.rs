//! Takes the DWARF out of a linked BPF object.
//!
//! BTF is made from the debug information, so the object cannot be built without it; but bpfprof embeds the object, and DWARF is nine tenths of it.

use anyhow::{Context, Result, bail};
use object::{
    build::elf::{Builder, SectionData},
    read::elf::{ElfFile64, FileHeader},
};

/// Sections without which the object does not load, or loses what the verifier needs.
const NEEDED: [&str; 4] = [".BTF", ".BTF.ext", ".symtab", "license"];

/// Returns the object without its `.debug_*` sections, their relocations, and the symbols of those sections.
pub(crate) fn strip_debug(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        section.delete = is_dwarf(&section.name.to_string());
    }
    builder.delete_orphans();
    separate_section_names(&mut builder);
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    expect_kept(object, &stripped)?;
    Ok(stripped)
}

/// LLVM keeps the names of sections and symbols in one table; the writer wants two.
fn separate_section_names(builder: &mut Builder<'_>) {
    if builder.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        return;
    }
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = object::elf::SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = SectionData::SectionString;
}

fn is_dwarf(section: &str) -> bool {
    section.starts_with(".debug_") || section.starts_with(".rel.debug_")
}

/// Every other section must have come through, and, symbols and relocations aside (they are renumbered), with the same bytes.
fn expect_kept(before: &[u8], after: &[u8]) -> Result<()> {
    use object::{Object, ObjectSection};
    let before = ElfFile64::<object::Endianness>::parse(before)?;
    let after = ElfFile64::<object::Endianness>::parse(after)?;
    for section in before.sections() {
        let name = section.name()?;
        if name.starts_with(".debug_")
            || section.elf_section_header().sh_type.get(before.endian()) != object::elf::SHT_PROGBITS
        {
            continue;
        }
        let kept = after.section_by_name(name).with_context(|| format!("section {name} was lost"))?;
        if kept.data()? != section.data()? {
            bail!("section {name} was changed");
        }
        if kept.relocations().count() != section.relocations().count() {
            bail!("relocations of section {name} were lost");
        }
    }
    let header = after.elf_header();
    let sections = header.sections(after.endian(), after.data())?;
    for needed in NEEDED {
        if sections.section_by_name(after.endian(), needed.as_bytes()).is_none() {
            bail!(
                "section {needed} is missing; is `--btf` passed to the linker, and has the program a licence?"
            );
        }
    }
    Ok(())
}
