//! How names of functions are shown.

use super::linkage;

/// What is left out of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// Leave out the arguments of generics and templates.
    pub(super) strip_generics: bool,
}

impl Style {
    /// The name as it is shown: never with Rust's hash, which says nothing to a reader and differs from build to build.
    pub(super) fn apply(self, name: &str) -> String {
        if let Some(target) = name.strip_suffix(linkage::SUFFIX) {
            return self.apply(target) + linkage::SUFFIX;
        }
        let name = without_hash(name);
        if self.strip_generics { without_generics(name) } else { name.into() }
    }
}

/// `f::h0123456789abcdef` is `f`.
fn without_hash(name: &str) -> &str {
    let is_hash = |last: &str| {
        last.len() == 17 && last.starts_with('h') && last[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match name.rsplit_once("::") {
        Some((path, last)) if is_hash(last) => path,
        _ => name,
    }
}

/// `a::f<T>` and `a::f::<T>` are `a::f`; a path that begins with a type, as `<T as Trait>::f`, keeps that.
pub(crate) fn without_generics(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(operator) = operator_at(&out, from) {
            out.push_str(operator);
            rest = &from[operator.len()..];
            // Its own arguments stand apart: `operator<< <char>(…)`.
            if let Some(arguments) = rest.strip_prefix(' ')
                && let Some(end) = closing(arguments)
            {
                rest = &arguments[end + 1..];
            }
            continue;
        }
        let Some(end) = closing(from) else {
            // Not as balanced as names of functions are: better whole than wrong.
            return name.into();
        };
        let (inside, after) = (&from[1..end], &from[end + 1..]);
        if begins_path(&out) || inside.starts_with("impl ") {
            out.push('<');
            out.push_str(&without_generics(inside));
            out.push('>');
        } else if out.ends_with("::") {
            out.truncate(out.len() - 2);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The C++ operator that begins here: in `operator<`, `operator<<=` and their like the sign is part of the name.
fn operator_at<'a>(before: &str, from: &'a str) -> Option<&'a str> {
    before.ends_with("operator").then_some(())?;
    ["<<=", "<=>", "<<", "<=", "<"]
        .into_iter()
        .find(|sign| from.starts_with(sign))
        .map(|sign| &from[..sign.len()])
}

/// Whether a type may begin after this: at the start of a name, or where a list or a reference of types goes on.
fn begins_path(before: &str) -> bool {
    before.is_empty() || before.ends_with([' ', '(', '&', '*', '[', ',', '<'])
}

/// Place of the bracket that closes the first one. The arrow of a function type closes none.
fn closing(text: &str) -> Option<usize> {
    text.strip_prefix('<')?;
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if at > 0 && matches!(bytes[at - 1], b'-' | b'=') => {}
            b'>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_never_shown() {
        for (name, shown) in [
            ("app::run::h0123456789abcdef", "app::run"),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}::hfedcba9876543210",
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            ),
            ("app::h0123456789abcdef0", "app::h0123456789abcdef0"),
            ("app::handle", "app::handle"),
            ("h0123456789abcdef", "h0123456789abcdef"),
        ] {
            assert_eq!(Style::default().apply(name), shown);
        }
    }

    #[test]
    fn generics_are_kept_unless_they_are_to_be_stripped() {
        let name = "alloc::vec::Vec<T,A>::push";
        assert_eq!(Style::default().apply(name), name);
        assert_eq!(Style { strip_generics: true }.apply(name), "alloc::vec::Vec::push");
    }

    #[test]
    fn real_names_stay_readable_without_generics() {
        for (name, shown) in [
            // Rust, legacy mangling.
            ("main", "main"),
            ("core::ptr::drop_in_place<alloc::vec::Vec<alloc::string::String>>", "core::ptr::drop_in_place"),
            (
                "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec as core::ops::drop::Drop>::drop",
            ),
            ("<&T as core::fmt::Debug>::fmt", "<&T as core::fmt::Debug>::fmt"),
            ("<T as core::convert::Into<U>>::into", "<T as core::convert::Into>::into"),
            ("alloc::slice::<impl [T]>::to_vec", "alloc::slice::<impl [T]>::to_vec"),
            (
                "core::num::<impl core::str::traits::FromStr for u32>::from_str",
                "core::num::<impl core::str::traits::FromStr for u32>::from_str",
            ),
            (
                "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold",
                "<core::iter::adapters::map::Map as core::iter::traits::iterator::Iterator>::fold",
            ),
            ("std::rt::lang_start::{{closure}}", "std::rt::lang_start::{{closure}}"),
            // Rust, v0 mangling.
            (
                "core::slice::sort::stable::driftsort::<(u64, &str), <(u64, &str) as core::cmp::PartialOrd>::lt>",
                "core::slice::sort::stable::driftsort",
            ),
            ("<regex::Regex>::new", "<regex::Regex>::new"),
            (
                "<alloc::vec::Vec<u8>>::reserve::do_reserve::<alloc::alloc::Global>",
                "<alloc::vec::Vec>::reserve::do_reserve",
            ),
            (
                "std::thread::spawn::<app::main::{closure#0}, ()>::{closure#1}",
                "std::thread::spawn::{closure#1}",
            ),
            (
                "<fn(&str) -> usize as core::ops::function::FnOnce<(&str,)>>::call_once",
                "<fn(&str) -> usize as core::ops::function::FnOnce>::call_once",
            ),
            ("<[T; 3] as app::Sum<T>>::sum", "<[T; 3] as app::Sum>::sum"),
            ("app::apply::<fn(u32) -> u32>", "app::apply"),
            // C++.
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector::push_back(int const&)",
            ),
            (
                "std::map<std::string, std::vector<int> >::operator[](std::string const&)",
                "std::map::operator[](std::string const&)",
            ),
            ("operator<(Point const&, Point const&)", "operator<(Point const&, Point const&)"),
            (
                "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
                "std::ostream& std::operator<<(std::ostream&, char const*)",
            ),
            ("Shape::operator<=>(Shape const&) const", "Shape::operator<=>(Shape const&) const"),
            ("Ptr<Shape>::operator->() const", "Ptr::operator->() const"),
            ("(anonymous namespace)::visit<Node>(Node*)", "(anonymous namespace)::visit(Node*)"),
            // Not balanced: left alone.
            ("LazyCompile:~a<b file.js:1:2", "LazyCompile:~a<b file.js:1:2"),
        ] {
            assert_eq!(Style { strip_generics: true }.apply(name), shown);
        }
    }
}
