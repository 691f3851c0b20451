//! Functions and inlined functions from DWARF, in one file or spread over several.
//!
//! Units may be split off (`.dwo` files, or a package `.dwp` of them), and `dwz` moves what several objects share to a supplementary
//! file. A file is opened as a process of the object would see it, read only if it is a regular ELF file, and must prove that
//! it belongs: by the id of its unit, or by its build id.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
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
use crate::kernel::BuildId;
use crate::processes::Object;
use crate::profile::Line;

/// All machines supported are little-endian.
type Bytes<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
type Sections<'a> = gimli::Dwarf<Bytes<'a>>;

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
    context: Context<Bytes<'a>>,
    package: Option<gimli::DwarfPackage<Bytes<'a>>>,
    object: &'a Object,
    files: &'a Files,
}

impl<'a> Dwarf<'a> {
    /// Reads the list of units in a file of the object; they themselves are read when an address is in them.
    pub(super) fn read(
        file: &File,
        path: &Path,
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
        let context = Context::from_dwarf(sections).ok()?;
        let package = [path, &object.path].into_iter().find_map(|path| files.package(object, path));
        Some(Self { context, package, object, files })
    }

    /// The function at an address, and the functions inlined there, outermost first; `None` when the address is in no unit.
    pub(super) fn functions(&self, address: u64) -> Option<Vec<Code>> {
        let mut lookup = self.context.find_frames(address);
        let mut frames = loop {
            match lookup {
                LookupResult::Output(frames) => break frames.ok()?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split_unit(&load));
                }
            }
        };
        let mut functions = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            let function = frame.function.and_then(|name| {
                let shown = name.demangle().ok()?.into_owned();
                let has_paths =
                    matches!(name.language, Some(gimli::DW_LANG_Rust)) || name.language.is_some_and(is_cpp);
                let is_whole = !has_paths || name.raw_name().is_ok_and(|raw| raw != shown);
                Some((shown, is_whole))
            });
            let (name, is_whole) = function.map_or((None, false), |(name, is_whole)| (Some(name), is_whole));
            let line = frame.location.and_then(|at| Some(Line { file: at.file?.into(), number: at.line? }));
            functions.push(Code { name, is_whole, line });
        }
        functions.reverse();
        (!functions.is_empty()).then_some(functions)
    }

    /// A unit that was split off: from the package, where its compiler wrote it, or from beside the object.
    fn split_unit(&self, load: &SplitDwarfLoad<Bytes<'a>>) -> Option<Arc<Sections<'a>>> {
        let packed =
            self.package.as_ref().and_then(|package| package.find_cu(load.dwo_id, &load.parent).ok()?);
        if let Some(packed) = packed {
            return Some(packed.into());
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
            Some(Arc::new(sections))
        })
    }
}

fn is_cpp(language: gimli::DwLang) -> bool {
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
