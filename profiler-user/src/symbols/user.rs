//! Names for the code of objects.

use std::borrow::Cow;
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use addr2line::demangle_auto;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::batches::Clock;
use super::dwarf::{Code, Dwarf, Files};
use super::elf::ElfFile;
use super::names::Style;
use super::{
    NamedCode, NoName, Resolution, SymbolOptions, debug_files, guard, linkage, symbol_table, trampoline,
    vdso, vsyscall,
};
use crate::function_parts;
use crate::processes::{BackingFile, Object, ObjectId, Objects};
use crate::profile::Line;
use crate::types::{ElfAddress, FileOffset};
use crate::unwind;

/// Longest time that one object may take. The largest programs with full debug information take a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Longest time for the symbol tables of one object.
const TIME_LIMIT_OF_SYMBOLS: Duration = Duration::from_secs(10);

/// Largest `.debug_info` that inlined functions are read from, in bytes; above it there are only names of functions.
const MAX_DEBUG_INFO: u64 = 2 << 30;

/// Resolves these places of an object, in their order. Nothing of the object stays in memory.
pub(super) fn resolve(
    objects: &Objects,
    id: ObjectId,
    offsets: &[FileOffset],
    options: &SymbolOptions,
    clock: &Clock,
) -> Vec<Resolution> {
    let unnamed = |why: NoName| vec![Resolution::unnamed(why); offsets.len()];
    let object = objects.get(id);
    let file = match (&object.backing, objects.file(id)) {
        (BackingFile::Vdso, _) => match vdso::image() {
            Some(file) => Arc::new(file),
            None => return unnamed(NoName::NoSymbols),
        },
        (BackingFile::Vsyscall, _) => return offsets.iter().map(|&offset| old_system_call(offset)).collect(),
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
            let servers = options.debuginfod.as_ref();
            clock.outside(|| servers.and_then(|servers| servers.debug_file(object.build_id?)))
        }
        Ok(DebugFile::NotNeeded) => None,
        Err(error) => return unnamed(NoName::Failed(error)),
    };
    let debug = debug.map(Arc::new);
    let resolved = |limit: Duration, dwarf: bool| {
        let (object, offsets, options) = (object.clone(), offsets.to_vec(), options.clone());
        let (file, debug) = (Arc::clone(&file), debug.clone());
        guard::run(limit, move || {
            Batch::prepare(&object, file, debug, dwarf, &options).map(|batch| batch.resolve(&offsets))
        })
    };
    let answer = match clock.left().map(|left| resolved(left.min(TIME_LIMIT), true)) {
        None | Some(Err(guard::Failure::TimedOut)) => {
            clock.end();
            resolved(TIME_LIMIT_OF_SYMBOLS, false)
        }
        Some(answer) => answer,
    };
    let answer = answer.unwrap_or_else(|failure| Err(failure.to_string()));
    answer.unwrap_or_else(|error| unnamed(NoName::Failed(error)))
}

fn old_system_call(offset: FileOffset) -> Resolution {
    match vsyscall::function(offset) {
        Some(name) => Resolution::named(NamedCode { name: name.into(), line: None }),
        None => Resolution::unnamed(NoName::NotCovered),
    }
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
    object: Object,
    file: Arc<File>,
    elf: ElfFile,
    /// Best first.
    sources: Vec<NameSource>,
    /// Why an address that no source knows has no name.
    missing: NoName,
    options: SymbolOptions,
}

/// Where names are. A file stays open as long as its names are asked for by its descriptor.
enum NameSource {
    LinkageTables(Arc<File>),
    Dwarf {
        path: PathBuf,
        file: Arc<File>,
        /// Where the file has code.
        code: Vec<Range<u64>>,
    },
    SymbolTable(Arc<File>),
    /// The same symbols, where one that encloses others is asked for.
    Enclosing(Arc<File>),
}

impl Batch {
    fn prepare(
        object: &Object,
        file: Arc<File>,
        debug: Option<Arc<File>>,
        dwarf: bool,
        options: &SymbolOptions,
    ) -> Result<Self, String> {
        let elf = ElfFile::read(&file).map_err(|error| error.to_string())?;
        elf.check_sizes()?;
        let linkage = elf.has_linkage_table.then(|| NameSource::LinkageTables(Arc::clone(&file)));
        let mut sources = Vec::from_iter(linkage);
        let mut has_symbols = elf.has_symbols || elf.debug_info > 0;
        if let Some(debug) = debug
            && let Ok(debug_elf) = ElfFile::read(&debug)
            && debug_elf.check_sizes().is_ok()
            && elf.has_code_of(&debug_elf)
        {
            has_symbols |= debug_elf.has_symbols || debug_elf.debug_info > 0;
            let path = fs::read_link(descriptor_path(&debug)).unwrap_or_default();
            sources.extend(NameSource::of(path, debug, &debug_elf, dwarf, options));
        }
        let missing = match (has_symbols, elf.has_exports) {
            (true, _) => NoName::NotCovered,
            (false, true) => NoName::ExportsOnly,
            (false, false) => NoName::NoSymbols,
        };
        sources.extend(NameSource::of(object.path.clone(), Arc::clone(&file), &elf, dwarf, options));
        Ok(Self { object: object.clone(), file, elf, sources, missing, options: options.clone() })
    }

    fn resolve(self, offsets: &[FileOffset]) -> Vec<Resolution> {
        let addresses: Vec<Option<ElfAddress>> =
            offsets.iter().map(|&offset| self.elf.address(offset)).collect();
        let mut found: Vec<Found> = Vec::new();
        found.resize_with(offsets.len(), Found::default);
        for source in &self.sources {
            // The names of one are enough for most; the next is asked for what is left, or was only guessed.
            let open: Vec<usize> =
                (0..offsets.len()).filter(|&at| addresses[at].is_some() && !found[at].covers).collect();
            let asked: Vec<u64> = open.iter().filter_map(|&at| Some(addresses[at]?.0)).collect();
            if asked.is_empty() {
                break;
            }
            // What makes no sense does not spoil the next.
            let answers = source.names(&self.object, &asked, &self.options).unwrap_or_default();
            for (at, answer) in open.into_iter().zip(answers) {
                found[at].improve(answer);
            }
        }
        for (found, &offset) in found.iter_mut().zip(offsets).filter(|(found, _)| !found.covers) {
            if let Some(name) = trampoline::name(&self.file, offset) {
                *found = Found { function: Some(name.into()), covers: true, ..Found::default() };
            }
        }
        self.find_aliases(&mut found, &addresses);
        let starts = self.starts(&found, &addresses);
        let found = found.into_iter().zip(starts);
        found.map(|(found, start)| found.resolution(&self.missing, start, &self.options)).collect()
    }

    /// Gives each function the best of its names, the same in every run, and notes the others.
    fn find_aliases(&self, found: &mut [Found], addresses: &[Option<ElfAddress>]) {
        for source in &self.sources {
            let NameSource::SymbolTable(file) = source else { continue };
            let is_open = |at: &usize| found[*at].function.is_some() && found[*at].also.is_empty();
            let (open, asked): (Vec<usize>, Vec<u64>) =
                (0..found.len()).filter(is_open).filter_map(|at| Some((at, addresses[at]?.0))).unzip();
            for (at, names) in open.into_iter().zip(symbol_table::names(file, &asked).unwrap_or_default()) {
                found[at].take_aliases(names.iter().map(|name| demangled(name)).collect());
            }
        }
        if !self.elf.is_go {
            found.iter_mut().for_each(Found::take_part);
        }
    }

    /// What stands in for the names that were not found: where the functions begin, or the addresses themselves.
    fn starts(&self, found: &[Found], addresses: &[Option<ElfAddress>]) -> Vec<Option<ElfAddress>> {
        let unnamed = |at: &usize| found[*at].function.is_none();
        let (places, asked): (Vec<usize>, Vec<ElfAddress>) =
            (0..found.len()).filter(unnamed).filter_map(|at| Some((at, addresses[at]?))).unzip();
        let mut starts = vec![None; found.len()];
        if !asked.is_empty() {
            let answers = unwind::function_starts(&self.file, &asked);
            for ((at, address), start) in places.into_iter().zip(asked).zip(answers) {
                starts[at] = start.or(Some(address));
            }
        }
        starts
    }
}

/// What sources give for an address.
#[derive(Default)]
struct Found {
    function: Option<String>,
    line: Option<Line>,
    /// Outermost first.
    inlined: Vec<NamedCode>,
    /// Other names of the function.
    also: Vec<String>,
    /// Whether no other source knows better: a symbol without a size is taken for the last before the address, and not all DWARF has whole
    /// names.
    covers: bool,
}

impl Found {
    /// A name that no other source knows better, if there is one.
    fn surely(name: Option<String>) -> Self {
        Self { covers: name.is_some(), function: name, ..Self::default() }
    }

    fn improve(&mut self, other: Self) {
        if other.function.is_some() && (other.covers || self.function.is_none()) {
            (self.function, self.covers) = (other.function, other.covers);
        }
        // Where assembly is, DWARF has lines alone.
        if self.line.is_none() && self.inlined.is_empty() {
            (self.line, self.inlined) = (other.line, other.inlined);
        }
    }

    /// Takes the first of these names of one symbol, unless debug information has another for it.
    fn take_aliases(&mut self, names: Vec<String>) {
        let Some(function) = &self.function else { return };
        let plain = |name: &str| Style::default().apply(function_parts::split(name).0);
        let function = plain(function);
        if self.covers && names.iter().all(|name| plain(name) != function) {
            return;
        }
        self.also = names;
        self.also.extend(self.function.take());
        self.function = self.also.first().cloned();
    }

    /// Tells a part or a copy of a function from the function.
    fn take_part(&mut self) {
        if let Some(function) = &mut self.function {
            let (plain, part) = function_parts::split(function);
            if !part.is_empty() {
                let plain = plain.to_owned();
                self.also.push(std::mem::replace(function, plain));
            }
        }
    }

    fn resolution(self, missing: &NoName, start: Option<ElfAddress>, options: &SymbolOptions) -> Resolution {
        let style = Style { strip_generics: options.strip_generics };
        let shown = |name: &str, line| NamedCode { name: style.apply(name), line };
        let Some(name) = self.function else {
            return Resolution::Unnamed { why: missing.clone(), start };
        };
        let inlined = self.inlined.into_iter().filter(|_| options.inlines);
        let function = shown(&name, self.line);
        let mut also: Vec<String> = self.also.iter().map(|name| style.apply(name)).collect();
        also.sort_unstable();
        also.dedup();
        also.retain(|name| *name != function.name);
        let inlined = inlined.map(|code| shown(&code.name, code.line)).collect();
        Resolution::Named { function, inlined, also }
    }
}

impl From<Vec<Code>> for Found {
    fn from(functions: Vec<Code>) -> Self {
        let mut functions = functions.into_iter();
        let Some(Code { name, is_whole, line }) = functions.next() else { return Self::default() };
        // Those whose name `dwz` moved to a file that is not here are left out.
        let inlined = functions.filter_map(|code| Some(NamedCode { name: code.name?, line: code.line }));
        Self { covers: is_whole, function: name, line, inlined: inlined.collect(), also: Vec::new() }
    }
}

impl NameSource {
    /// Those of a file, best first.
    fn of(
        path: PathBuf,
        file: Arc<File>,
        elf: &ElfFile,
        dwarf: bool,
        options: &SymbolOptions,
    ) -> impl Iterator<Item = Self> {
        // Without a symbol table, DWARF is the only place of names.
        let wanted = options.inlines && elf.debug_info <= MAX_DEBUG_INFO;
        let dwarf = dwarf && elf.debug_info > 0 && (wanted || !elf.has_symbols);
        let dwarf = dwarf.then(|| Self::Dwarf { path, file: Arc::clone(&file), code: elf.code().collect() });
        dwarf.into_iter().chain([Self::SymbolTable(Arc::clone(&file)), Self::Enclosing(file)])
    }

    /// Names for these addresses, in their order; `None` when there are none at all.
    fn names(&self, object: &Object, addresses: &[u64], options: &SymbolOptions) -> Option<Vec<Found>> {
        match self {
            Self::LinkageTables(file) => {
                Some(linkage::targets(file, addresses).ok()?.into_iter().map(Found::surely).collect())
            }
            Self::Dwarf { path, file, code } => {
                let files = Files::default();
                let dwarf = Dwarf::read(file, path, code, object, &options.debug_dirs, &files)?;
                let found = |&address| dwarf.functions(address).map(Found::from).unwrap_or_default();
                Some(addresses.iter().map(found).collect())
            }
            Self::SymbolTable(file) => symbols(file, addresses),
            Self::Enclosing(file) => {
                let names = symbol_table::names(file, addresses)?.into_iter();
                Some(names.map(|names| Found::surely(names.first().map(|name| demangled(name)))).collect())
            }
        }
    }
}

fn demangled(name: &str) -> String {
    demangle_auto(Cow::Borrowed(name), None).into_owned()
}

/// Names from the symbol tables of a file, compressed ones included.
fn symbols(file: &File, addresses: &[u64]) -> Option<Vec<Found>> {
    let mut elf = Elf::new(descriptor_path(file));
    elf.debug_syms = false;
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).enable_code_info(false).build();
    let answers = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(addresses)).ok()?;
    let found = answers.iter().map(|answer| match answer {
        Symbolized::Sym(symbol) if !symbol.name.is_empty() => Found {
            function: Some(symbol.name.to_string()),
            covers: symbol.size.is_some_and(|size| symbol.offset < size),
            ..Found::default()
        },
        Symbolized::Sym(_) | Symbolized::Unknown(_) => Found::default(),
    });
    Some(found.collect())
}

fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    use crate::kernel::Mapped;
    use crate::types::Tgid;

    fn options(inlines: bool) -> SymbolOptions {
        SymbolOptions {
            inlines,
            strip_generics: false,
            debug_dirs: Vec::new(),
            debuginfod: None,
            time_limit: TIME_LIMIT,
        }
    }

    fn resolve_batch(file: File, offsets: &[FileOffset], inlines: bool) -> Result<Vec<Resolution>, String> {
        let object = Object::named("/nonexistent/object", None);
        let options = options(inlines);
        let offsets = offsets.to_vec();
        guarded(move || {
            Batch::prepare(&object, file.into(), None, true, &options).map(|batch| batch.resolve(&offsets))
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
