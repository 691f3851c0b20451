//! Names for the code of objects.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use super::elf::ElfFile;
use super::names::Style;
use super::{NamedCode, NoName, Resolution, SymbolOptions, debug_files, guard, vdso};
use crate::processes::{BackingFile, Object, ObjectId, Objects};
use crate::profile::Line;
use crate::types::FileOffset;

/// Longest time that one object may take. The largest programs with full debug information take a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Largest `.debug_info` that inlined functions are read from, in bytes; above it there are only names of functions.
const MAX_DEBUG_INFO: u64 = 2 << 30;

/// What compressed sections of a file, or its compressed symbol table, may become in memory, in bytes.
const MAX_DECOMPRESSED: u64 = 2 << 30;

/// Resolves these places of an object, in their order. Nothing of the object stays in memory.
pub(super) fn resolve(
    objects: &Objects,
    id: ObjectId,
    offsets: &[FileOffset],
    options: &SymbolOptions,
) -> Vec<Resolution> {
    let unnamed = |why: NoName| vec![Resolution::Unnamed(why); offsets.len()];
    let object = objects.get(id);
    let file = match (&object.backing, objects.file(id)) {
        (BackingFile::Vdso, _) => match vdso::image() {
            Some(file) => Arc::new(file),
            None => return unnamed(NoName::NoSymbols),
        },
        (_, Ok(file)) => file,
        (_, Err(why)) => return unnamed(NoName::Unreadable(why)),
    };
    let debug = {
        let (object, file, options) = (object.clone(), Arc::clone(&file), options.clone());
        guarded(move || DebugFile::look_for(&object, &file, &options))
    };
    let debug = match debug {
        Ok(DebugFile::Here(file)) => Some(file),
        Ok(DebugFile::Missing) => {
            options.debuginfod.as_ref().and_then(|servers| servers.debug_file(object.build_id?))
        }
        Ok(DebugFile::NotNeeded) => None,
        Err(error) => return unnamed(NoName::Failed(error)),
    };
    let resolved = {
        let (object, offsets, options) = (object.clone(), offsets.to_vec(), options.clone());
        guarded(move || Batch::prepare(&object, file, debug, &options).map(|batch| batch.resolve(&offsets)))
    };
    resolved.unwrap_or_else(|error| unnamed(NoName::Failed(error)))
}

fn guarded<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    guard::run(TIME_LIMIT, work).unwrap_or_else(|failure| Err(failure.to_string()))
}

/// The separate debug file of an object.
enum DebugFile {
    Here(File),
    /// It is not on this machine.
    Missing,
    NotNeeded,
}

impl DebugFile {
    fn look_for(object: &Object, file: &File, options: &SymbolOptions) -> Result<Self, String> {
        let elf = ElfFile::read(file).map_err(|error| error.to_string())?;
        if elf.debug_info > 0 {
            return Ok(Self::NotNeeded);
        }
        // An object whose symbols are there needs no server for its names.
        let missing = if elf.has_symbols && !options.inlines { Self::NotNeeded } else { Self::Missing };
        Ok(debug_files::find(object, &elf, &options.debug_dirs).map_or(missing, Self::Here))
    }
}

/// All that names one object's code.
struct Batch {
    elf: ElfFile,
    /// Best first.
    sources: Vec<NameSource>,
    /// Why an address that no source knows has no name.
    missing: NoName,
    inlines: bool,
    style: Style,
}

/// A file with names.
struct NameSource {
    path: PathBuf,
    /// Keeps the path valid where it is one of a descriptor.
    _file: Arc<File>,
    /// Whether to read its DWARF.
    dwarf: bool,
}

impl Batch {
    fn prepare(
        object: &Object,
        file: Arc<File>,
        debug: Option<File>,
        options: &SymbolOptions,
    ) -> Result<Self, String> {
        let elf = ElfFile::read(&file).map_err(|error| error.to_string())?;
        check_sizes(&elf)?;
        let mut sources = Vec::new();
        let mut has_symbols = elf.has_symbols || elf.debug_info > 0;
        if let Some(debug) = debug
            && let Ok(debug_elf) = ElfFile::read(&debug)
            && check_sizes(&debug_elf).is_ok()
        {
            has_symbols |= debug_elf.has_symbols || debug_elf.debug_info > 0;
            let path = fs::read_link(format!("/proc/self/fd/{}", debug.as_raw_fd())).unwrap_or_default();
            sources.push(NameSource::new(&path, debug.into(), &debug_elf, options));
        }
        let missing = match (has_symbols, elf.has_exports) {
            (true, _) => NoName::NotCovered,
            (false, true) => NoName::ExportsOnly,
            (false, false) => NoName::NoSymbols,
        };
        sources.push(NameSource::new(&object.path, file, &elf, options));
        let style = Style { strip_generics: options.strip_generics };
        Ok(Self { elf, sources, missing, inlines: options.inlines, style })
    }

    fn resolve(self, offsets: &[FileOffset]) -> Vec<Resolution> {
        let addresses: Vec<Option<u64>> =
            offsets.iter().map(|&offset| self.elf.address(offset).map(|address| address.0)).collect();
        let mut found: Vec<Option<Found>> = Vec::new();
        found.resize_with(offsets.len(), || None);
        for source in &self.sources {
            // The names of one are enough for most; the next is asked for what is left, or was only guessed.
            let open: Vec<usize> = (0..offsets.len())
                .filter(|&at| {
                    addresses[at].is_some() && !found[at].as_ref().is_some_and(|found| found.covers)
                })
                .collect();
            let asked: Vec<u64> = open.iter().filter_map(|&at| addresses[at]).collect();
            if asked.is_empty() {
                break;
            }
            for (at, answer) in open.into_iter().zip(source.names(&asked, self.inlines, self.style)) {
                if let Some(answer) = answer
                    && (answer.covers || found[at].is_none())
                {
                    found[at] = Some(answer);
                }
            }
        }
        let missing = self.missing;
        found
            .into_iter()
            .map(|found| match found {
                Some(found) => Resolution::Named { function: found.function, inlined: found.inlined },
                None => Resolution::Unnamed(missing.clone()),
            })
            .collect()
    }
}

/// A name that a source gives.
struct Found {
    function: NamedCode,
    inlined: Vec<NamedCode>,
    /// Whether the symbol says that it reaches as far as the address; one without a size is taken for the last before it.
    covers: bool,
}

impl NameSource {
    fn new(path: &Path, file: Arc<File>, elf: &ElfFile, options: &SymbolOptions) -> Self {
        // Without a symbol table, DWARF is the only place of names.
        let wanted = options.inlines && elf.debug_info <= MAX_DEBUG_INFO;
        // blazesym opens whatever a link names; root must not open a device because a stranger's file says so.
        let harmless = !elf.leads_elsewhere || is_trusted(&file);
        let dwarf = elf.debug_info > 0 && (wanted || !elf.has_symbols) && harmless;
        Self { path: readable_path(path, &file), _file: file, dwarf }
    }

    fn names(&self, addresses: &[u64], inlines: bool, style: Style) -> Vec<Option<Found>> {
        if self.dwarf
            && let Some(names) = self.ask(addresses, true, inlines, style)
        {
            return names;
        }
        // DWARF that makes no sense does not spoil the symbol table.
        let none = || addresses.iter().map(|_| None).collect();
        self.ask(addresses, false, false, style).unwrap_or_else(none)
    }

    fn ask(&self, addresses: &[u64], dwarf: bool, inlines: bool, style: Style) -> Option<Vec<Option<Found>>> {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            // blazesym finds inlined functions only together with lines.
            .enable_code_info(inlines && dwarf)
            .enable_inlined_fns(inlines && dwarf)
            .build();
        let mut elf = Elf::new(&self.path);
        elf.debug_syms = dwarf;
        let answers = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(addresses)).ok()?;
        let found = answers.iter().map(|answer| match answer {
            Symbolized::Sym(symbol) if !symbol.name.is_empty() => Some(found(symbol, style)),
            Symbolized::Sym(_) | Symbolized::Unknown(_) => None,
        });
        Some(found.collect())
    }
}

fn found(symbol: &Sym<'_>, style: Style) -> Found {
    // Those whose declaration dwz moved to another file come without a name.
    let inlined = symbol.inlined.iter().filter(|inlined| !inlined.name.is_empty());
    let code = |name: &str, info: Option<&CodeInfo<'_>>| NamedCode {
        name: style.apply(name),
        line: info.and_then(line),
    };
    Found {
        function: code(&symbol.name, symbol.code_info.as_deref()),
        inlined: inlined.map(|inlined| code(&inlined.name, inlined.code_info.as_ref())).collect(),
        covers: symbol.size.is_some_and(|size| symbol.offset < size),
    }
}

fn line(info: &CodeInfo<'_>) -> Option<Line> {
    Some(Line { file: info.to_path().to_string_lossy().into(), number: info.line? })
}

/// A small file may claim, or really have, sections that fill all memory when they are decompressed.
fn check_sizes(elf: &ElfFile) -> Result<(), String> {
    let too_large = || Err(format!("its sections become more than {} GiB", MAX_DECOMPRESSED >> 30));
    if elf.decompressed > MAX_DECOMPRESSED {
        return too_large();
    }
    let Some(mini) = &elf.mini_symbols else { return Ok(()) };
    let mut decoder = xz2::read::XzDecoder::new(mini.as_slice()).take(MAX_DECOMPRESSED);
    match io::copy(&mut decoder, &mut io::sink()) {
        Ok(len) if len < MAX_DECOMPRESSED => Ok(()),
        Ok(_) => too_large(),
        Err(error) => Err(format!("its .gnu_debugdata cannot be decompressed: {error}")),
    }
}

/// Whether a file belongs to root or to who runs bpfprof.
fn is_trusted(file: &File) -> bool {
    let owner = file.metadata().map(|metadata| metadata.uid());
    owner.is_ok_and(|owner| owner == 0 || owner == rustix::process::geteuid().as_raw())
}

/// What blazesym opens: the very file, or its path where a package of split DWARF (`.dwp`) lies beside it.
fn readable_path(path: &Path, file: &File) -> PathBuf {
    let same = || {
        let (Ok(named), Ok(opened)) = (fs::metadata(path), file.metadata()) else { return false };
        (named.dev(), named.ino()) == (opened.dev(), opened.ino())
    };
    let mut package = path.as_os_str().to_os_string();
    package.push(".dwp");
    if Path::new(&package).is_file() && same() {
        path.to_path_buf()
    } else {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    use crate::kernel::Mapped;
    use crate::types::Tgid;

    fn options(inlines: bool) -> SymbolOptions {
        SymbolOptions { inlines, strip_generics: false, debug_dirs: Vec::new(), debuginfod: None }
    }

    fn resolve_batch(file: File, offsets: &[FileOffset], inlines: bool) -> Result<Vec<Resolution>, String> {
        let object = Object::named("/nonexistent/object", None);
        let options = options(inlines);
        let offsets = offsets.to_vec();
        guarded(move || {
            Batch::prepare(&object, file.into(), None, &options).map(|batch| batch.resolve(&offsets))
        })
    }

    /// Place of a function of this program in its file.
    fn own_code() -> FileOffset {
        let address = own_code as fn() -> FileOffset as usize as u64;
        let mapping = crate::processes::mappings(Tgid(std::process::id()))
            .into_iter()
            .find(|Mapped { start, len, .. }| (start.0..start.0 + len).contains(&address))
            .unwrap();
        FileOffset(address - mapping.start.0 + mapping.file_offset.0)
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        for inlines in [false, true] {
            let file = File::open("/proc/self/exe").unwrap();
            let resolved = resolve_batch(file, &[own_code()], inlines).unwrap();
            assert!(
                matches!(&resolved[0], Resolution::Named { function, .. } if function.name.ends_with("user::tests::own_code")),
                "{resolved:?}"
            );
        }
    }

    #[test]
    fn malformed_files_cost_no_more_than_their_names() {
        let original = fs::read("/bin/true").unwrap();
        let offsets: Vec<FileOffset> = (0..original.len() as u64).step_by(512).map(FileOffset).collect();
        let mut random = 1u64;
        let mut next = || {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for round in 0..200 {
            let mut bytes = original.clone();
            if round % 2 == 0 {
                bytes.truncate(next() as usize % bytes.len());
            }
            // Headers are at both ends of the file.
            for _ in 0..8 {
                let len = bytes.len().max(1);
                let at = if next() % 2 == 0 {
                    next() as usize % len.min(1024)
                } else {
                    len - 1 - next() as usize % len.min(2048)
                };
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = next() as u8;
                }
            }
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            if let Ok(resolved) = resolve_batch(file, &offsets, true) {
                assert_eq!(resolved.len(), offsets.len());
            }
        }
    }
}
