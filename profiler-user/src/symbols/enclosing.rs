//! The symbol around an address, where smaller symbols lie inside a function: tables and second entries of hand-written assembly.

use std::borrow::Cow;
use std::fs::File;

use addr2line::demangle_auto;
use memmap2::Mmap;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// Names of the smallest symbols that cover these addresses, in their order.
pub(super) fn names(file: &File, addresses: &[u64]) -> Option<Vec<Option<String>>> {
    // SAFETY: another process may write to the file. Its bytes are read as numbers and text of any value; where it is cut short, the guard
    // answers for it.
    let mapped = unsafe { Mmap::map(file) }.ok()?;
    let elf = object::File::parse(&*mapped).ok()?;
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    order.sort_by_key(|&at| addresses[at]);
    let mut found: Vec<Option<Enclosing<'_>>> = Vec::new();
    found.resize_with(addresses.len(), || None);
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let (start, size) = (symbol.address(), symbol.size());
        // Symbols of assembly often have no type.
        if size == 0
            || !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown)
            || symbol.is_undefined()
        {
            continue;
        }
        let Ok(name) = symbol.name().map(str::trim) else { continue };
        let first = order.partition_point(|&at| addresses[at] < start);
        for &at in order[first..].iter().take_while(|&&at| addresses[at] - start < size) {
            let candidate = Enclosing { size, is_local: symbol.is_local(), name };
            if !name.is_empty() && found[at].as_ref().is_none_or(|best| candidate < *best) {
                found[at] = Some(candidate);
            }
        }
    }
    let shown = |symbol: Enclosing<'_>| demangle_auto(Cow::Borrowed(symbol.name), None).into_owned();
    Some(found.into_iter().map(|symbol| symbol.map(shown)).collect())
}

/// A symbol around an address. The least is the best: the smallest, a public one, and one order of names for aliases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Enclosing<'a> {
    size: u64,
    is_local: bool,
    name: &'a str,
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
        assert!(
            names[..2].iter().all(|name| name.as_ref().unwrap().contains("encloses_its_code")),
            "{names:?}"
        );
        assert_eq!(names[2], None);
    }

    #[test]
    fn the_smallest_public_name_counts() {
        let symbol = |size, is_local, name| Enclosing { size, is_local, name };
        let mut all =
            [symbol(8, false, "b"), symbol(8, true, "a"), symbol(64, false, "a"), symbol(8, false, "a")];
        all.sort();
        assert!(all[0] == symbol(8, false, "a") && all[3] == symbol(64, false, "a"));
    }
}
