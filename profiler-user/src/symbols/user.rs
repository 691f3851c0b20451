//! Names for the code of objects.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Reason, Symbolized, Symbolizer};

use super::elf::Segments;
use super::{NoName, Resolution, SymbolOptions, vdso};
use crate::processes::{BackingFile, Object, Unreadable};
use crate::types::FileOffset;

/// Resolves these places of an object, in their order. Nothing of the object stays in memory.
pub(super) fn resolve(object: &Object, offsets: &[FileOffset], options: SymbolOptions) -> Vec<Resolution> {
    let unnamed = |why: NoName| vec![Resolution::Unnamed(why); offsets.len()];
    let file = match &object.backing {
        BackingFile::Open(file) => Arc::clone(file),
        BackingFile::Vdso => match vdso::image() {
            Some(file) => file.into(),
            None => return unnamed(NoName::NoSymbols),
        },
        BackingFile::Unreadable(why) => return unnamed(NoName::Unreadable(describe(*why))),
    };
    // The parsers read what strangers wrote; a panic in one costs the names of one object.
    let resolved = catch_unwind(AssertUnwindSafe(|| resolve_file(object, &file, offsets, options)));
    match resolved {
        Ok(Ok(resolutions)) => resolutions,
        Ok(Err(error)) => unnamed(NoName::Malformed(error)),
        Err(_) => unnamed(NoName::Malformed("its parser failed".into())),
    }
}

fn resolve_file(
    object: &Object,
    file: &File,
    offsets: &[FileOffset],
    options: SymbolOptions,
) -> Result<Vec<Resolution>, String> {
    let segments = Segments::read(file).map_err(|error| error.to_string())?;
    let addresses: Vec<Option<u64>> =
        offsets.iter().map(|&offset| segments.address(offset).map(|address| address.0)).collect();
    let known: Vec<u64> = addresses.iter().copied().flatten().collect();
    let symbolizer = Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_code_info(options.inlines)
        .enable_inlined_fns(options.inlines)
        .build();
    let source = Source::Elf(Elf::new(readable_path(object, file)));
    let symbolized =
        symbolizer.symbolize(&source, Input::VirtOffset(&known)).map_err(|error| error.to_string())?;
    let mut symbolized = symbolized.iter();
    let resolutions = addresses.iter().map(|address| match address.and_then(|_| symbolized.next()) {
        Some(Symbolized::Sym(symbol)) => Resolution::Named {
            function: symbol.name.to_string(),
            inlined: symbol.inlined.iter().map(|inlined| inlined.name.to_string()).collect(),
        },
        Some(Symbolized::Unknown(Reason::MissingSyms)) => Resolution::Unnamed(NoName::NoSymbols),
        Some(Symbolized::Unknown(_)) | None => Resolution::Unnamed(NoName::NotCovered),
    });
    Ok(resolutions.collect())
}

/// Debug links are looked up beside an object's path, so that is used while it still names the very file that was mapped.
fn readable_path(object: &Object, file: &File) -> PathBuf {
    let same = |path: &Path| {
        let (Ok(named), Ok(opened)) = (fs::metadata(path), file.metadata()) else { return false };
        (named.dev(), named.ino()) == (opened.dev(), opened.ino())
    };
    if same(&object.path) {
        object.path.clone()
    } else {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}

fn describe(why: Unreadable) -> &'static str {
    match why {
        Unreadable::Gone => "its file was gone before it could be opened",
        Unreadable::NotPermitted => "bpfprof may not open its file",
        Unreadable::NoFile => "the kernel gives it no file",
    }
}
