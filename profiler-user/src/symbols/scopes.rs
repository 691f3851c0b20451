//! Names of C++ functions with their scopes. Compilers write no linkage name for what no other file can call, lambdas among it,
//! so the name is put together from the entries around that of the function, as debuggers do.
//!
//! Units may refer to each other, to split units' own sections and to what `dwz` moved, and all of it may be malformed: hops and nesting are bounded.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ptr;
use std::rc::Rc;

use addr2line::gimli;
use gimli::AttributeValue;

use super::dwarf::{Bytes, Sections, is_cpp};
use super::scope_index::{Kind, ScopeId, ScopeIndex};

/// References that lead from an entry to the one with its name. Compilers need three: inlined, abstract, declared.
const MAX_HOPS: usize = 16;

/// Scopes of a name: namespaces, classes and functions within each other.
const MAX_SCOPES: usize = 64;

/// Functions within functions (lambdas in lambdas).
const MAX_FUNCTIONS: usize = 16;

/// Longest name that is put together, in bytes.
const MAX_NAME: usize = 1 << 16;

/// Scopes of all units of an object together, of 16 bytes each: 64 MiB. What is beyond keeps its bare names.
const MAX_INDEXED: usize = 1 << 22;

/// Entries in a class among which its call operator is looked for.
const MAX_MEMBERS: usize = 1024;

/// The scopes of an object's units, each read when a name needs it first.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    files: RefCell<HashMap<usize, Rc<Units<'a>>>>,
    /// Names of functions, by the address of their sections, their unit and their place in that.
    names: RefCell<HashMap<[usize; 3], Option<String>>>,
    indexed: Cell<usize>,
}

/// The units of one file, or of one split unit's sections.
#[derive(Default)]
struct Units<'a> {
    list: OnceCell<UnitList>,
    read: RefCell<HashMap<usize, Option<Rc<Unit<'a>>>>>,
}

/// Where units begin, in order, and the types that are units of their own.
#[derive(Default)]
struct UnitList {
    starts: Vec<usize>,
    types: HashMap<gimli::DebugTypeSignature, (usize, gimli::UnitOffset)>,
}

struct Unit<'a> {
    dwarf: gimli::Unit<Bytes<'a>>,
    language: Option<gimli::DwLang>,
    index: OnceCell<ScopeIndex>,
    /// What unnamed types are called, by the scope they are in.
    numbers: RefCell<HashMap<Option<ScopeId>, Rc<Numbers>>>,
}

/// What the unnamed types of a scope are called.
type Numbers = HashMap<ScopeId, String>;

/// Place of an entry.
#[derive(Clone)]
struct Place<'c, 'a> {
    sections: &'c Sections<'a>,
    unit: Rc<Unit<'a>>,
    offset: gimli::UnitOffset,
}

/// An entry with what others say for it.
struct Entry<'c, 'a> {
    /// Where the last of them is: its scopes are those of the name.
    place: Place<'c, 'a>,
    name: Option<String>,
    linkage_name: Option<String>,
}

/// The index of a unit that is not indexed, as there are too many scopes.
static NO_SCOPES: ScopeIndex = ScopeIndex::empty();

impl<'a> Scopes<'a> {
    /// The name of the C++ function at this place of a unit, with its scopes; `None` where there is nothing to add to what the entry says.
    pub(super) fn name(
        &self,
        unit: gimli::UnitRef<'_, Bytes<'a>>,
        offset: gimli::UnitOffset,
    ) -> Option<String> {
        let start = unit.header.debug_info_offset()?;
        let place = Place { sections: unit.dwarf, unit: self.unit(unit.dwarf, start.0)?, offset };
        self.function(place, 0)
    }

    /// The language of a unit.
    pub(super) fn language(&self, unit: gimli::UnitRef<'_, Bytes<'a>>) -> Option<gimli::DwLang> {
        self.unit(unit.dwarf, unit.header.debug_info_offset()?.0)?.language
    }

    /// The name of a function; `depth` functions have this one in their names.
    fn function(&self, place: Place<'_, 'a>, depth: usize) -> Option<String> {
        let by_default = place.unit.language;
        let entry = self.entry(place)?;
        let key = entry.place.key();
        if let Some(known) = self.names.borrow().get(&key) {
            return known.clone();
        }
        let name = self.scoped(&entry, by_default, depth);
        self.names.borrow_mut().insert(key, name.clone());
        name
    }

    fn scoped(
        &self,
        entry: &Entry<'_, 'a>,
        by_default: Option<gimli::DwLang>,
        depth: usize,
    ) -> Option<String> {
        if let Some(name) = &entry.linkage_name
            && let Some(shown) = addr2line::demangle(name, gimli::DW_LANG_C_plus_plus)
        {
            return Some(shown);
        }
        // What `dwz` moved to units of their own may have lost its language.
        entry.place.unit.language.or(by_default).filter(|language| is_cpp(*language))?;
        let scopes = self.scopes(&entry.place, depth)?;
        let mut name = String::new();
        for part in scopes.iter().rev().chain(&entry.name) {
            if !name.is_empty() {
                name += "::";
            }
            name += part;
        }
        (name.len() <= MAX_NAME).then_some(name)
    }

    /// The scopes that an entry is in, innermost first.
    fn scopes(&self, inside: &Place<'_, 'a>, depth: usize) -> Option<Vec<String>> {
        let mut place = inside.clone();
        let (mut scopes, mut len) = (Vec::new(), 0);
        for _ in 0..MAX_SCOPES {
            let index = self.index(&place.unit);
            let Some(id) = index.around(place.offset) else { return Some(scopes) };
            let (kind, offset) = index.get(id)?;
            let scope = Place { offset, ..place.clone() };
            let name = match kind {
                Kind::Block => {
                    place = scope;
                    continue;
                }
                Kind::Function => {
                    // What it is in is in its own name.
                    let name = (depth < MAX_FUNCTIONS).then(|| self.function(scope, depth + 1))?;
                    scopes.push(name?);
                    return Some(scopes);
                }
                Kind::Namespace => {
                    let name = self.entry(scope.clone())?.name;
                    place = scope;
                    name.unwrap_or_else(|| "(anonymous namespace)".into())
                }
                Kind::Type => {
                    let entry = self.entry(scope.clone())?;
                    let number = || self.numbers(&scope, id).get(&id).cloned();
                    let name = entry.name.or_else(number)?;
                    place = entry.place;
                    name
                }
            };
            len += name.len();
            if len > MAX_NAME {
                return None;
            }
            scopes.push(name);
        }
        None
    }

    /// An entry, completed by those that it refers to.
    fn entry<'c>(&self, mut place: Place<'c, 'a>) -> Option<Entry<'c, 'a>> {
        let (mut name, mut linkage_name) = (None, None);
        for _ in 0..MAX_HOPS {
            let entry = place.unit.dwarf.entry(place.offset).ok()?;
            let text = |attribute| {
                let text =
                    place.sections.attr_string(&place.unit.dwarf, entry.attr_value(attribute)?).ok()?;
                Some(text.to_string_lossy().into_owned())
            };
            name = name.or_else(|| text(gimli::DW_AT_name));
            linkage_name = linkage_name
                .or_else(|| text(gimli::DW_AT_linkage_name))
                .or_else(|| text(gimli::DW_AT_MIPS_linkage_name));
            let other = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification, gimli::DW_AT_signature]
                .into_iter()
                .find_map(|attribute| entry.attr_value(attribute));
            let Some(other) = other else { return Some(Entry { place, name, linkage_name }) };
            place = self.follow(place, other)?;
        }
        None
    }

    /// The entry that one refers to.
    fn follow<'c>(&self, from: Place<'c, 'a>, to: AttributeValue<Bytes<'a>>) -> Option<Place<'c, 'a>> {
        match to {
            AttributeValue::UnitRef(offset) => Some(Place { offset, ..from }),
            AttributeValue::DebugInfoRef(offset) => self.place(from.sections, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => self.place(from.sections.sup()?, offset.0),
            AttributeValue::DebugTypesRef(signature) => {
                let (start, offset) = *self.units(from.sections).list(from.sections).types.get(&signature)?;
                Some(Place { unit: self.unit(from.sections, start)?, offset, ..from })
            }
            _ => None,
        }
    }

    /// The entry at this place of the section.
    fn place<'c>(&self, sections: &'c Sections<'a>, at: usize) -> Option<Place<'c, 'a>> {
        let units = self.units(sections);
        let starts = &units.list(sections).starts;
        let start = *starts.get(starts.partition_point(|&start| start <= at).checked_sub(1)?)?;
        let unit = self.unit(sections, start)?;
        Some(Place { sections, unit, offset: gimli::UnitOffset(at - start) })
    }

    fn units(&self, sections: &Sections<'a>) -> Rc<Units<'a>> {
        // Sections stay where they are as long as the object's context, and so does this.
        let key = ptr::from_ref(sections).addr();
        Rc::clone(self.files.borrow_mut().entry(key).or_default())
    }

    /// The unit that begins here.
    fn unit(&self, sections: &Sections<'a>, start: usize) -> Option<Rc<Unit<'a>>> {
        let units = self.units(sections);
        let mut read = units.read.borrow_mut();
        read.entry(start).or_insert_with(|| Unit::read(sections, start).map(Rc::new)).clone()
    }

    fn index<'u>(&self, unit: &'u Unit<'a>) -> &'u ScopeIndex {
        if self.indexed.get() >= MAX_INDEXED {
            return unit.index.get().unwrap_or(&NO_SCOPES);
        }
        unit.index.get_or_init(|| {
            let index = ScopeIndex::read(&unit.dwarf, MAX_INDEXED - self.indexed.get());
            // One that is too large ends it, so that none is read in vain again.
            self.indexed.set(self.indexed.get() + index.as_ref().map_or(MAX_INDEXED, ScopeIndex::len));
            index.unwrap_or_default()
        })
    }

    /// What the types without a name are called that are in the same scope as this one: numbered by their order in the source, which is the same in
    /// every build.
    fn numbers(&self, scope: &Place<'_, 'a>, id: ScopeId) -> Rc<Numbers> {
        let index = self.index(&scope.unit);
        let owner = index.owner(id);
        if let Some(known) = scope.unit.numbers.borrow().get(&owner) {
            return Rc::clone(known);
        }
        let mut unnamed: Vec<_> = index
            .types_in(owner)
            .filter_map(|(id, offset)| {
                let entry = scope.unit.dwarf.entry(offset).ok()?;
                let number = |attribute| entry.attr_value(attribute).and_then(|value| value.udata_value());
                let is_named = [gimli::DW_AT_name, gimli::DW_AT_specification, gimli::DW_AT_signature]
                    .into_iter()
                    .any(|attribute| entry.has_attr(attribute));
                let place = (number(gimli::DW_AT_decl_line), number(gimli::DW_AT_decl_column), offset);
                (!is_named).then_some((place, id))
            })
            .collect();
        unnamed.sort_unstable();
        let (mut lambdas, mut others) = (1.., 1..);
        let numbers = unnamed.into_iter().filter_map(|((.., offset), id)| {
            let place = Place { offset, ..scope.clone() };
            // As demanglers spell them.
            let name = if is_lambda(&place) {
                format!("{{lambda#{}}}", lambdas.next()?)
            } else {
                format!("{{unnamed type#{}}}", others.next()?)
            };
            Some((id, name))
        });
        let numbers = Rc::new(numbers.collect::<Numbers>());
        scope.unit.numbers.borrow_mut().insert(owner, Rc::clone(&numbers));
        numbers
    }
}

/// Whether a class without a name is one that can be called.
fn is_lambda(class: &Place<'_, '_>) -> bool {
    let unit = &class.unit.dwarf;
    let Ok(mut tree) = unit.entries_tree(Some(class.offset)) else { return false };
    let Ok(root) = tree.root() else { return false };
    let mut members = root.children();
    for _ in 0..MAX_MEMBERS {
        let Ok(Some(member)) = members.next() else { return false };
        let name = member.entry().attr_value(gimli::DW_AT_name);
        if member.entry().tag() == gimli::DW_TAG_subprogram
            && let Some(name) = name.and_then(|name| class.sections.attr_string(unit, name).ok())
            && name.slice().starts_with(b"operator()")
        {
            return true;
        }
    }
    false
}

impl Place<'_, '_> {
    fn key(&self) -> [usize; 3] {
        let start = self.unit.dwarf.header.debug_info_offset().map_or(0, |start| start.0);
        [ptr::from_ref(self.sections).addr(), start, self.offset.0]
    }
}

impl<'a> Unit<'a> {
    fn read(sections: &Sections<'a>, start: usize) -> Option<Self> {
        let header = sections.unit_header(gimli::DebugInfoOffset(start)).ok()?;
        let dwarf = sections.unit(header).ok()?;
        let root = dwarf.entry(dwarf.header.root_offset()).ok()?;
        let language = match root.attr_value(gimli::DW_AT_language) {
            Some(AttributeValue::Language(language)) => Some(language),
            _ => None,
        };
        Some(Self { dwarf, language, index: OnceCell::new(), numbers: RefCell::default() })
    }
}

impl<'a> Units<'a> {
    fn list(&self, sections: &Sections<'a>) -> &UnitList {
        self.list.get_or_init(|| {
            let mut list = UnitList::default();
            let mut units = sections.units();
            // What is malformed ends it: the next one cannot be found.
            while let Ok(Some(unit)) = units.next() {
                let Some(start) = unit.debug_info_offset() else { break };
                list.starts.push(start.0);
                if let gimli::UnitType::Type { type_signature, type_offset }
                | gimli::UnitType::SplitType { type_signature, type_offset } = unit.type_()
                {
                    list.types.insert(type_signature, (start.0, type_offset));
                }
            }
            list
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags, whether they have children, and attributes with their forms, by the number of the abbreviation.
    const ABBREVIATIONS: &[u8] = &[
        1, 0x11, 1, 0x13, 0x0b, 0, 0, // a unit of a language
        2, 0x39, 1, 0x03, 0x08, 0, 0, // a namespace
        3, 0x39, 1, 0, 0, // one without a name
        4, 0x13, 1, 0x3b, 0x0b, 0, 0, // a class without a name at a line
        5, 0x13, 1, 0x03, 0x08, 0, 0, // a class
        6, 0x2e, 1, 0x03, 0x08, 0, 0, // a function
        7, 0x2e, 1, 0x6e, 0x08, 0, 0, // one with a linkage name
        8, 0x2e, 0, 0x47, 0x13, 0, 0, // one that is declared elsewhere
        9, 0x1d, 0, 0x31, 0x13, 0, 0, // an inlined one
        10, 0x1d, 0, 0x31, 0x10, 0, 0, // one of another unit
        11, 0x0b, 1, 0, 0, // a block
        0,
    ];

    const CPP: u8 = 4;

    /// A section of units.
    #[derive(Default)]
    struct Info {
        bytes: Vec<u8>,
        unit: usize,
    }

    impl Info {
        fn unit(&mut self, language: u8) {
            self.unit = self.bytes.len();
            self.bytes.extend([0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, language]);
        }

        /// Ends the unit.
        fn end_unit(&mut self) {
            self.bytes.push(0);
            let len = self.bytes.len() - self.unit - 4;
            self.bytes[self.unit..self.unit + 4].copy_from_slice(&(len as u32).to_le_bytes());
        }

        /// Adds an entry, and returns its place in the unit.
        fn entry(&mut self, abbreviation: u8, attributes: &[&[u8]]) -> usize {
            let place = self.bytes.len() - self.unit;
            self.bytes.push(abbreviation);
            self.bytes.extend(attributes.concat());
            place
        }

        fn named(&mut self, abbreviation: u8, name: &str) -> usize {
            self.entry(abbreviation, &[name.as_bytes(), &[0]])
        }

        fn referring(&mut self, abbreviation: u8, to: usize) -> usize {
            self.entry(abbreviation, &[&(to as u32).to_le_bytes()])
        }

        /// Ends what the innermost entries have.
        fn close(&mut self, entries: usize) {
            self.bytes.extend(vec![0; entries]);
        }

        /// A class without a name that can be called, and the place of what it calls.
        fn lambda(&mut self, line: u8) -> usize {
            self.entry(4, &[&[line]]);
            let call = self.named(6, "operator()");
            self.close(2);
            call
        }
    }

    /// The name of the function at this place of the unit with this number.
    fn name(info: &[u8], number: usize, place: usize) -> Option<String> {
        let sections = gimli::Dwarf::load(|id| {
            let bytes = match id {
                gimli::SectionId::DebugInfo => info,
                gimli::SectionId::DebugAbbrev => ABBREVIATIONS,
                _ => &[],
            };
            Ok::<_, gimli::Error>(Bytes::new(bytes, gimli::LittleEndian))
        });
        let sections = sections.ok()?;
        let mut units = sections.units();
        for _ in 0..number {
            units.next().ok()?;
        }
        let unit = sections.unit(units.next().ok()??).ok()?;
        Scopes::default().name(unit.unit_ref(&sections), gimli::UnitOffset(place))
    }

    #[test]
    fn a_name_has_all_its_scopes() {
        let mut info = Info::default();
        info.unit(CPP);
        info.named(2, "app");
        info.entry(3, &[]);
        info.named(5, "Inner");
        let step = info.named(6, "step<int>");
        info.close(4);
        let main = info.named(6, "main");
        let defined = info.referring(8, step);
        let inlined = info.referring(9, defined);
        info.close(1);
        info.end_unit();
        info.unit(CPP);
        let elsewhere = info.referring(10, defined);
        info.end_unit();
        let expected = Some("app::(anonymous namespace)::Inner::step<int>");
        assert_eq!(name(&info.bytes, 0, inlined).as_deref(), expected);
        assert_eq!(name(&info.bytes, 1, elsewhere).as_deref(), expected);
        assert_eq!(name(&info.bytes, 0, main).as_deref(), Some("main"));
        // What is in the function is not what it is declared in.
        assert_eq!(name(&info.bytes, 0, step).as_deref(), expected);
    }

    #[test]
    fn lambdas_are_numbered_by_their_order_in_the_source() {
        let mut info = Info::default();
        info.unit(CPP);
        info.named(7, "_ZN3app5firstEm");
        let second = info.lambda(20);
        info.entry(11, &[]);
        let first = info.lambda(10);
        info.close(2);
        info.named(6, "other");
        let other = info.lambda(30);
        // It has no call operator.
        info.entry(4, &[&[5]]);
        let method = info.named(6, "method");
        info.close(2);
        info.named(6, "outer");
        info.entry(4, &[&[40]]);
        info.named(6, "operator()");
        let nested = info.lambda(41);
        info.close(3);
        info.close(1);
        info.end_unit();
        for (place, expected) in [
            (first, "app::first(unsigned long)::{lambda#1}::operator()"),
            (second, "app::first(unsigned long)::{lambda#2}::operator()"),
            (other, "other::{lambda#1}::operator()"),
            (method, "other::{unnamed type#1}::method"),
            (nested, "other::outer::{lambda#1}::operator()::{lambda#1}::operator()"),
        ] {
            assert_eq!(name(&info.bytes, 0, place).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_languages_have_no_scopes() {
        for language in [0x0c, 0x1c] {
            let mut info = Info::default();
            info.unit(language);
            info.named(2, "app");
            let function = info.named(6, "f");
            info.close(2);
            info.end_unit();
            assert_eq!(name(&info.bytes, 0, function), None);
        }
    }

    #[test]
    fn references_in_a_circle_end() {
        let mut info = Info::default();
        info.unit(CPP);
        let itself = info.bytes.len();
        info.referring(9, itself);
        let one = info.bytes.len();
        info.referring(8, one + 5);
        info.referring(9, one);
        info.end_unit();
        for place in [itself, one, one + 5] {
            assert_eq!(name(&info.bytes, 0, place), None);
        }
    }

    #[test]
    fn what_is_nested_without_end_has_no_name() {
        let mut info = Info::default();
        info.unit(CPP);
        (0..100_000).for_each(|_| _ = info.named(2, "a"));
        let function = info.named(6, "f");
        info.end_unit();
        assert_eq!(name(&info.bytes, 0, function), None);
    }

    #[test]
    fn damage_makes_no_more_than_wrong_names() {
        let mut sound = Info::default();
        for _ in 0..2 {
            sound.unit(CPP);
            sound.named(2, "app");
            sound.named(7, "_ZN3app5firstEm");
            let call = sound.lambda(3);
            sound.close(2);
            let defined = sound.referring(8, call);
            sound.referring(9, defined);
            sound.referring(10, defined);
            sound.end_unit();
        }
        let mut random = 7_u64;
        let mut next = |below: usize| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for _ in 0..20_000 {
            let mut info = sound.bytes.clone();
            for _ in 0..1 + next(4) {
                let at = next(info.len());
                info[at] = [0, 1, 0x7f, 0xff, next(256) as u8][next(5)];
            }
            (11..info.len() / 2).step_by(3).for_each(|place| _ = name(&info, next(2), place));
        }
    }
}
