//! Functions and inlined functions from DWARF, in one file or spread over several.
//!
//! Units may be split off (`.dwo` files, or a package `.dwp` of them), and `dwz` moves what several objects share to a supplementary
//! file. A file is opened as a process of the object would see it, read only if it is a regular ELF file, and must prove that
//! it belongs: by the id of its unit, or by its build id.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::gimli;
use addr2line::{Context, LookupContinuation as _, LookupResult, SplitDwarfLoad};
use memmap2::Mmap;
use object::{Object as _, ObjectSection as _};
use typed_arena::Arena;

use super::debug_files;
use super::elf::ElfFile;
use super::nesting::{Nesting, is_too_deep};
use super::rust_paths;
use super::scopes::Scopes;
use crate::kernel::BuildId;
use crate::processes::Object;
use crate::profile::Line;

/// All machines supported are little-endian.
pub(super) type Bytes<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
pub(super) type Sections<'a> = gimli::Dwarf<Bytes<'a>>;

/// Files in memory: mapped, and what was compressed in them.
#[derive(Default)]
pub(super) struct Files {
    mapped: Arena<Mmap>,
    decompressed: Arena<Vec<u8>>,
}

/// A function at a line. Its name may be in a file that is not here, and assembly has lines alone.
pub(super) struct Code {
    pub(super) name: Option<String>,
    /// Whether the name says all: units with line tables alone leave the path out of names of Rust and C++.
    pub(super) is_whole: bool,
    pub(super) line: Option<Line>,
}

/// The DWARF of an object.
pub(super) struct Dwarf<'a> {
    sections: Arc<Sections<'a>>,
    context: Context<Bytes<'a>>,
    nesting: Nesting<'a>,
    scopes: Scopes<'a>,
    package: Option<gimli::DwarfPackage<Bytes<'a>>>,
    /// Where the file has code.
    code: &'a [Range<u64>],
    object: &'a Object,
    files: &'a Files,
}

impl<'a> Dwarf<'a> {
    /// Reads the list of units in a file of the object; they themselves are read when an address is in them.
    pub(super) fn read(
        file: &File,
        path: &Path,
        code: &'a [Range<u64>],
        object: &'a Object,
        folders: &[PathBuf],
        files: &'a Files,
    ) -> Option<Self> {
        let elf = files.map(file)?;
        let mut sections = files.sections(&elf, |id| Some(id.name()))?;
        if let Some((link, id)) = elf.gnu_debugaltlink().ok()?
            && let Some(id) = BuildId::new(id)
            && let Some(supplementary) = debug_files::find_supplementary(object, path, link, id, folders)
            && let Some(elf) = files.map(&supplementary)
        {
            sections.set_sup(files.sections(&elf, |id| Some(id.name()))?);
        }
        sections.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let sections = Arc::new(sections);
        let nesting = Nesting::read(&sections);
        let context = Context::from_arc_dwarf(Arc::clone(&sections)).ok()?;
        let package = [path, &object.path].into_iter().find_map(|path| files.package(object, path));
        Some(Self { sections, context, nesting, scopes: Scopes::default(), package, code, object, files })
    }

    /// The function at an address, and the functions inlined there, outermost first; `None` when the address is in no unit.
    pub(super) fn functions(&self, address: u64) -> Option<Vec<Code>> {
        if self.nesting.is_too_deep(&self.sections, address) {
            return None;
        }
        let mut lookup = self.context.find_frames(address);
        let mut frames = loop {
            match lookup {
                LookupResult::Output(frames) => break frames.ok()?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split_unit(&load));
                }
            }
        };
        let (mut functions, mut unit, mut outermost) = (Vec::new(), None, None);
        let mut next = frames.next().ok()?;
        while let Some(frame) = next {
            next = frames.next().ok()?;
            outermost = frame.dw_die_offset;
            let line = frame.location.and_then(|at| Some(Line { file: at.file?.into(), number: at.line? }));
            let name = frame.function.and_then(|name| {
                let shown = name.demangle().ok()?.into_owned();
                let is_demangled = name.raw_name().is_ok_and(|raw| raw != shown);
                Some((shown, is_demangled))
            });
            let Some((name, is_demangled)) = name else {
                functions.push(Code { name: None, is_whole: false, line });
                continue;
            };
            let mut code = Code { name: Some(name), is_whole: true, line };
            if !is_demangled
                && let Some(entry) = frame.dw_die_offset
                && let Some(unit) =
                    *unit.get_or_insert_with(|| self.context.find_dwarf_and_unit(address).skip_all_loads())
            {
                let language = self.scopes.language(unit);
                code.is_whole = !language.is_some_and(has_paths);
                // The symbol table has the whole name of the function that the last frame is; the others are inlined.
                if next.is_some()
                    && let Some(whole) = self.whole_name(&code, language, unit, entry)
                {
                    (code.name, code.is_whole) = (Some(whole), true);
                }
            }
            functions.push(code);
        }
        if self.is_of_removed_code(address, outermost) {
            return None;
        }
        functions.reverse();
        (!functions.is_empty()).then_some(functions)
    }

    /// Whether what was found describes code that the linker removed: its addresses became 0, 1 or the like, and its length is still there, so
    /// that it seems to lie over live code.
    fn is_of_removed_code(&self, address: u64, function: Option<gimli::UnitOffset>) -> bool {
        /// No function is as long as this.
        const LONGEST: u64 = 16 << 20;
        let Some(code) = self.code.iter().find(|code| code.contains(&address)) else { return false };
        if address > LONGEST {
            return false;
        }
        let Some(function) = function else {
            // A line alone: where the one before the code has a line too, they come from before it.
            let before = code.start.checked_sub(1);
            return before
                .is_some_and(|before| self.context.find_location(before).is_ok_and(|line| line.is_some()));
        };
        let begin = || {
            let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
            let mut ranges = unit.die_ranges(&unit.entry(function).ok()?).ok()?;
            while let Some(range) = ranges.next().ok()? {
                if (range.begin..range.end).contains(&address) {
                    return Some(range.begin);
                }
            }
            None
        };
        begin().is_some_and(|begin| !self.code.iter().any(|code| code.contains(&begin)))
    }

    /// The name of an inlined function with the path that its own lacks, as far as it can be known.
    fn whole_name(
        &self,
        code: &Code,
        language: Option<gimli::DwLang>,
        unit: gimli::UnitRef<'_, Bytes<'a>>,
        entry: gimli::UnitOffset,
    ) -> Option<String> {
        if language == Some(gimli::DW_LANG_Rust) {
            return rust_paths::in_module(&code.line.as_ref()?.file, code.name.as_ref()?);
        }
        self.scopes.name(unit, entry)
    }

    /// A unit that was split off: from the package, where its compiler wrote it, or from beside the object.
    fn split_unit(&self, load: &SplitDwarfLoad<Bytes<'a>>) -> Option<Arc<Sections<'a>>> {
        let packed =
            self.package.as_ref().and_then(|package| package.find_cu(load.dwo_id, &load.parent).ok()?);
        if let Some(packed) = packed {
            return is_readable(&packed).then(|| packed.into());
        }
        let path = |bytes: &Bytes<'a>| PathBuf::from(OsStr::from_bytes(bytes.slice()));
        let name = path(load.path.as_ref()?);
        let built = load.comp_dir.as_ref().map(path).unwrap_or_default().join(&name);
        let beside = self.object.path.parent()?.join(name.file_name()?);
        [built, beside].iter().find_map(|path| {
            let file = self.object.find_companion(path, |_| true)?;
            let elf = self.files.map(&file)?;
            let mut sections = self.files.sections(&elf, gimli::SectionId::dwo_name)?;
            let header = sections.units().next().ok()??;
            let unit = sections.unit(header).ok()?;
            if unit.dwo_id != Some(load.dwo_id) {
                return None;
            }
            sections.make_dwo(&load.parent);
            is_readable(&sections).then(|| Arc::new(sections))
        })
    }
}

/// Whether no unit that was split off nests too deep to be read.
fn is_readable(split: &Sections<'_>) -> bool {
    let mut headers = split.units();
    while let Ok(Some(header)) = headers.next() {
        if split.abbreviations(&header).map_or(true, |abbreviations| is_too_deep(&header, &abbreviations)) {
            return false;
        }
    }
    true
}

/// Whether names of functions have paths in this language.
fn has_paths(language: gimli::DwLang) -> bool {
    language == gimli::DW_LANG_Rust || is_cpp(language)
}

/// Whether a language is C++.
pub(super) fn is_cpp(language: gimli::DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20
    )
}

impl Files {
    fn map(&self, file: &File) -> Option<object::File<'_>> {
        ElfFile::read(file).ok()?.check_sizes().ok()?;
        // SAFETY: another process may write to the file. Its bytes are read as numbers and text of any value; where it is cut short, the guard answers for it.
        let mapped = unsafe { Mmap::map(file) }.ok()?;
        object::File::parse(&**self.mapped.alloc(mapped)).ok()
    }

    fn sections<'a>(
        &'a self,
        elf: &object::File<'a>,
        name: impl Fn(gimli::SectionId) -> Option<&'static str>,
    ) -> Option<Sections<'a>> {
        gimli::Dwarf::load(|id| self.section(elf, name(id))).ok()
    }

    /// The package of split units that lies beside a file.
    fn package(&self, object: &Object, path: &Path) -> Option<gimli::DwarfPackage<Bytes<'_>>> {
        let mut path = path.as_os_str().to_os_string();
        path.push(".dwp");
        let elf = self.map(&object.find_companion(Path::new(&path), |_| true)?)?;
        let empty = Bytes::new(&[], gimli::LittleEndian);
        gimli::DwarfPackage::load(|id| self.section(&elf, id.dwo_name()), empty).ok()
    }

    fn section<'a>(&'a self, elf: &object::File<'a>, name: Option<&str>) -> gimli::Result<Bytes<'a>> {
        let section = name.and_then(|name| elf.section_by_name(name));
        let data =
            section.map(|section| section.uncompressed_data()).transpose().map_err(|_| gimli::Error::Io)?;
        let data = match data.unwrap_or_default() {
            Cow::Borrowed(data) => data,
            Cow::Owned(data) => self.decompressed.alloc(data),
        };
        Ok(Bytes::new(data, gimli::LittleEndian))
    }
}
