//! Which scope each entry of a DWARF unit is in: entries do not name their parents, so they are found by one pass over the unit.

use addr2line::gimli;

use super::dwarf::Bytes;

/// Deepest nesting of scopes that is followed. Compilers' own limit is 256 levels of brackets, and most scopes are left out here.
const MAX_NESTING: usize = 256;

/// The scopes of a unit that have functions or types in them, in the order of their places.
#[derive(Default)]
pub(super) struct ScopeIndex {
    scopes: Vec<Scope>,
}

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Namespace,
    /// A class, structure, union or enumeration.
    Type,
    /// A function, or what was inlined of one.
    Function,
    /// Code between braces, which has no name.
    Block,
}

#[derive(Clone, Copy, Debug)]
struct Scope {
    /// Place of its entry in the unit.
    start: u32,
    /// Place behind the last entry that is in it.
    end: u32,
    /// Its own scope; [`NONE`] in the unit itself.
    parent: u32,
    kind: Kind,
}

/// Number of no scope.
const NONE: u32 = u32::MAX;

/// Number of a scope of an index.
pub(super) type ScopeId = u32;

impl Kind {
    fn of(tag: gimli::DwTag) -> Option<Self> {
        Some(match tag {
            gimli::DW_TAG_namespace => Self::Namespace,
            gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_interface_type
            | gimli::DW_TAG_enumeration_type => Self::Type,
            gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => Self::Function,
            gimli::DW_TAG_lexical_block => Self::Block,
            _ => return None,
        })
    }
}

/// A scope that the pass is in.
struct Open {
    depth: isize,
    id: usize,
    /// Whether it has a function or a type in it.
    is_needed: bool,
}

impl ScopeIndex {
    /// Reads a unit, up to where it makes no sense any more. `None` where it has more than `limit` scopes.
    pub(super) fn read(unit: &gimli::Unit<Bytes<'_>>, limit: usize) -> Option<Self> {
        let mut index = Self::default();
        let mut open: Vec<Open> = Vec::new();
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let (offset, depth) = (u32::try_from(entries.next_offset().0).ok()?, entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            index.close(&mut open, depth, offset);
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
            let Some(kind) = Kind::of(abbreviation.tag()) else { continue };
            let is_content = kind == Kind::Type || abbreviation.tag() == gimli::DW_TAG_subprogram;
            if let Some(inside) = open.last_mut() {
                inside.is_needed |= is_content;
            }
            if abbreviation.has_children() && open.len() < MAX_NESTING {
                if index.scopes.len() >= limit {
                    return None;
                }
                let parent = open.last().map_or(Some(NONE), |inside| u32::try_from(inside.id).ok())?;
                open.push(Open { depth, id: index.scopes.len(), is_needed: false });
                index.scopes.push(Scope { start: offset, end: u32::MAX, parent, kind });
            }
        }
        index.close(&mut open, isize::MIN, u32::MAX);
        index.scopes.shrink_to_fit();
        Some(index)
    }

    /// Ends the scopes that an entry at this depth is not in. Those with nothing in them are dropped, and so are the last.
    fn close(&mut self, open: &mut Vec<Open>, depth: isize, offset: u32) {
        while let Some(ended) = open.pop_if(|inside| inside.depth >= depth) {
            if !ended.is_needed {
                self.scopes.truncate(ended.id);
            } else if let Some(scope) = self.scopes.get_mut(ended.id) {
                scope.end = offset;
                if let Some(outside) = open.last_mut() {
                    outside.is_needed = true;
                }
            }
        }
    }

    /// One without scopes.
    pub(super) const fn empty() -> Self {
        Self { scopes: Vec::new() }
    }

    /// How many it has.
    pub(super) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// The innermost scope that the entry at this place is in; `None` in the unit itself.
    pub(super) fn around(&self, gimli::UnitOffset(offset): gimli::UnitOffset) -> Option<ScopeId> {
        let before = self.scopes.partition_point(|scope| (scope.start as usize) < offset);
        let mut id = u32::try_from(before.checked_sub(1)?).ok()?;
        // No more turns than scopes are nested.
        loop {
            let scope = self.scopes.get(id as usize)?;
            if offset < scope.end as usize {
                return Some(id);
            }
            id = scope.parent;
        }
    }

    /// What a scope is, and the place of its entry.
    pub(super) fn get(&self, id: ScopeId) -> Option<(Kind, gimli::UnitOffset)> {
        self.scopes.get(id as usize).map(|scope| (scope.kind, gimli::UnitOffset(scope.start as usize)))
    }

    /// The scope that a scope is in, blocks left out.
    pub(super) fn owner(&self, id: ScopeId) -> Option<ScopeId> {
        let parent = |id: ScopeId| self.scopes.get(id as usize).map_or(NONE, |scope| scope.parent);
        let mut owner = parent(id);
        while self.scopes.get(owner as usize)?.kind == Kind::Block {
            owner = parent(owner);
        }
        Some(owner)
    }

    /// The types in a scope or in its blocks, or in the unit itself, with the places of their entries.
    pub(super) fn types_in(
        &self,
        owner: Option<ScopeId>,
    ) -> impl Iterator<Item = (ScopeId, gimli::UnitOffset)> {
        let (first, end) = match owner.and_then(|id| Some((id, self.scopes.get(id as usize)?))) {
            Some((id, scope)) => (id + 1, scope.end),
            None => (0, u32::MAX),
        };
        let inside = self.scopes.iter().skip(first as usize).take_while(move |scope| scope.start < end);
        let types = (first..).zip(inside).filter(|(_, scope)| scope.kind == Kind::Type);
        let types = types.filter(move |&(id, _)| self.owner(id) == owner);
        types.map(|(id, scope)| (id, gimli::UnitOffset(scope.start as usize)))
    }
}
