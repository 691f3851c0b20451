//! The symbols around an address: the smallest one's names, where smaller symbols lie inside a function (tables and second entries of
//! hand-written assembly) and where one function has several names (aliases, and functions that the linker found to be the same).

use std::fs::File;

use memmap2::Mmap;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// Names of one function that are kept.
const MOST_NAMES: usize = 32;

/// Names of the smallest symbols that cover these addresses, in their order, the best of each first; none where no symbol does.
pub(super) fn names(file: &File, addresses: &[u64]) -> Option<Vec<Vec<String>>> {
    // SAFETY: another process may write to the file. Its bytes are read as numbers and text of any value; where it is cut short, the guard
    // answers for it.
    let mapped = unsafe { Mmap::map(file) }.ok()?;
    let elf = object::File::parse(&*mapped).ok()?;
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    order.sort_by_key(|&at| addresses[at]);
    let mut found: Vec<Vec<Candidate<'_>>> = vec![Vec::new(); addresses.len()];
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let (start, size) = (symbol.address(), symbol.size());
        // Symbols of assembly often have no type.
        if size == 0
            || !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown)
            || symbol.is_undefined()
        {
            continue;
        }
        let Ok(name) = symbol.name().map(|name| without_version(name.trim())) else { continue };
        let first = order.partition_point(|&at| addresses[at] < start);
        for &at in order[first..].iter().take_while(|&&at| addresses[at] - start < size) {
            let candidate = Candidate {
                size,
                start,
                is_local: symbol.is_local(),
                underscores: underscores(name),
                len: name.len(),
                name,
            };
            if !name.is_empty() {
                candidate.add_to(&mut found[at]);
            }
        }
    }
    let names = |mut symbols: Vec<Candidate<'_>>| {
        symbols.sort();
        symbols.dedup_by_key(|symbol| symbol.name);
        symbols.into_iter().map(|symbol| symbol.name.to_owned()).collect()
    };
    Some(found.into_iter().map(names).collect())
}

/// A symbol around an address. The least is the best: the smallest, a public one, the one that others are made of by underscores, and one order
/// of names for the rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<'a> {
    size: u64,
    start: u64,
    is_local: bool,
    underscores: usize,
    len: usize,
    name: &'a str,
}

impl<'a> Candidate<'a> {
    /// Keeps the smallest, and all names of it.
    fn add_to(self, found: &mut Vec<Candidate<'a>>) {
        let place = |symbol: &Candidate<'_>| (symbol.size, symbol.start);
        match found.first().map(place) {
            Some(known) if known < place(&self) => return,
            Some(known) if known > place(&self) => found.clear(),
            _ => {}
        }
        if found.len() < MOST_NAMES {
            found.push(self);
        } else if let Some(worst) = found.iter_mut().max()
            && self < *worst
        {
            *worst = self;
        }
    }
}

/// What a name begins with beside what mangling puts there: C libraries call the same `malloc`, `__libc_malloc` and `__GI___libc_malloc`.
fn underscores(name: &str) -> usize {
    if name.starts_with("_Z") || name.starts_with("_R") {
        return 0;
    }
    name.len() - name.trim_start_matches('_').len()
}

/// `memcpy@@GLIBC_2.14` is `memcpy`.
fn without_version(name: &str) -> &str {
    match name.split_once('@') {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program_encloses_its_code() {
        let file = File::open("/proc/self/exe").unwrap();
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let own = elf.symbols().find(|symbol| {
            symbol.name().is_ok_and(|name| name.contains("encloses_its_code")) && symbol.size() > 8
        });
        let (start, end) = own.map(|symbol| (symbol.address(), symbol.address() + symbol.size())).unwrap();
        let names = names(&file, &[end - 1, start + 4, 1]).unwrap();
        assert!(names[..2].iter().all(|names| names[0].contains("encloses_its_code")), "{names:?}");
        assert!(names[2].is_empty());
    }

    #[test]
    fn the_smallest_symbol_counts_with_all_its_names_the_public_one_first() {
        let mut found = Vec::new();
        let symbols = [
            (64, true, "around"),
            (8, true, "__GI___libc_work"),
            (8, false, "__libc_work"),
            (8, false, "work"),
            (8, false, "walk"),
            (64, false, "another"),
        ];
        for (size, is_local, name) in symbols {
            let symbol =
                Candidate { size, start: 0, is_local, underscores: underscores(name), len: name.len(), name };
            symbol.add_to(&mut found);
        }
        found.sort();
        let names: Vec<_> = found.iter().map(|symbol| symbol.name).collect();
        assert_eq!(names, ["walk", "work", "__libc_work", "__GI___libc_work"]);
    }

    #[test]
    fn versions_are_no_part_of_names() {
        for (name, plain) in
            [("memcpy@@GLIBC_2.14", "memcpy"), ("a@VERSION", "a"), ("@", "@"), ("_ZN1aE", "_ZN1aE")]
        {
            assert_eq!(without_version(name), plain);
        }
    }
}
