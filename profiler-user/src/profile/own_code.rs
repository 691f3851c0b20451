//! Which code people own, and which came with their language: its standard library, its compiler's headers, its runtime.

/// Whether a function is of the standard library of Rust, C or C++, or a compiler intrinsic.
///
/// Where its source lies decides. The name decides where the path is not known, or was made relative by the build.
pub(super) fn is_library(name: &str, file: Option<&str>) -> bool {
    match file {
        None => has_library_name(name),
        Some(file) => is_library_source(file) || (is_below_library(file) && has_library_name(name)),
    }
}

/// Whether a function only leads from the operating system to own code, and is part of the C library or of a compiler's runtime.
pub(super) fn is_runtime(name: &str, object: &str) -> bool {
    const STARTS: [&str; 6] = ["_start", "start_thread", "clone", "clone3", "__clone", "__clone3"];
    const OBJECTS: [&str; 10] = [
        "ld-linux",
        "ld-musl",
        "libc++",
        "libc-",
        "libc.musl",
        "libc.so",
        "libgcc_s.so",
        "libm.so",
        "libpthread",
        "libstdc++",
    ];
    STARTS.contains(&name)
        || ["__libc_start_", "__rust_", "rust_"].iter().any(|start| name.starts_with(start))
        || OBJECTS.iter().any(|start| object.starts_with(start))
}

/// Crates of Rust's distribution.
const CRATES: [&str; 9] = [
    "core",
    "alloc",
    "std",
    "proc_macro",
    "test",
    "panic_unwind",
    "panic_abort",
    "std_detect",
    "compiler_builtins",
];

/// Whether a source file came with a compiler.
fn is_library_source(file: &str) -> bool {
    let parts: Vec<&str> = file.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    is_rust_library(&parts) || is_c_library(&parts)
}

/// `/rustc/HASH/library/…` as rustc writes it (<https://rust-lang.github.io/rfcs/3127-trim-paths.html>), the `rust-src` component, the source
/// packages of distributions (`/usr/src/rustc-1.85.0/library`), and `/rust/deps` for what the standard library is built with.
fn is_rust_library(parts: &[&str]) -> bool {
    if parts.starts_with(&["rust", "deps"]) {
        return true;
    }
    let library = (1..parts.len()).find(|&at| parts[at] == "library");
    library.is_some_and(|at| {
        let is_hash = |part: &str| part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let before = &parts[..at];
        before.ends_with(&["rustlib", "src", "rust"])
            || before.last().is_some_and(|last| is_source_package(last))
            || (before.len() >= 2
                && before[at - 2] == "rustc"
                && (is_hash(before[at - 1]) || before.len() == 2))
    })
}

/// `rustc-1.85.0` and its like.
fn is_source_package(part: &str) -> bool {
    let version = part.strip_prefix("rustc-");
    version.is_some_and(|version| {
        version.starts_with(|first: char| first.is_ascii_digit())
            || version.starts_with("beta")
            || version.starts_with("nightly")
    })
}

/// Headers of the C++ library (`…/include/c++/14`), of the C library (`…/include/bits`), and of the compiler itself
/// (`…/lib/gcc/…/include`, `…/lib/clang/19/include`), where the intrinsics are.
fn is_c_library(parts: &[&str]) -> bool {
    let includes = (0..parts.len()).filter(|&at| parts[at] == "include");
    includes.into_iter().any(|at| {
        // A directory for each machine may lie between.
        let below = [parts.get(at + 1), parts.get(at + 2).filter(|_| is_triplet(parts[at + 1]))];
        let is_of_library = below.iter().flatten().any(|part| matches!(**part, "c++" | "bits"));
        let before = &parts[..at];
        let is_compiler = before
            .windows(2)
            .any(|pair| matches!(pair, ["lib" | "lib64" | "libexec", "gcc" | "clang" | "gcc-cross"]));
        is_of_library || is_compiler
    })
}

/// `x86_64-linux-gnu` and its like.
fn is_triplet(part: &str) -> bool {
    part.contains("-linux")
}

/// Whether a path could be of Rust's library below a prefix that the build mapped away.
fn is_below_library(file: &str) -> bool {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    parts.windows(2).any(|pair| pair[0] == "library" && CRATES.contains(&pair[1]))
}

fn has_library_name(name: &str) -> bool {
    if let Some(inside) = name.strip_prefix('<') {
        // A path that begins with a type: `<u64>::f`, `<T as Trait>::f`.
        let inside = &inside[..end_of_list(inside)];
        return match split_as(inside) {
            Some((of, implemented)) => is_of_library(implemented) && (is_of_library(of) || is_parameter(of)),
            None => is_of_library(inside),
        };
    }
    let path = path(name);
    path.contains("::") && is_of_library(path)
}

/// The path of a name without the type that a C++ template returns and without its arguments.
fn path(name: &str) -> &str {
    let (mut depth, mut start) = (0usize, 0);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b'(' if depth == 0 && at > start && !name[start..at].ends_with("::") => return &name[start..at],
            b' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

/// Whether a path or a type begins in a library's crate or namespace, or is a type of the language.
fn is_of_library(path: &str) -> bool {
    let path = path.trim_start_matches(['&', ' ']);
    // Slices, arrays, tuples, raw pointers and functions, whatever they are of.
    if path.starts_with(['[', '(', '*']) || path.starts_with("fn(") {
        return true;
    }
    for word in ["mut ", "const ", "dyn "] {
        if let Some(rest) = path.strip_prefix(word) {
            return is_of_library(rest);
        }
    }
    let root = path.split([':', '<', ',', ';', ']', ')', ' ']).next().unwrap_or_default();
    const NAMESPACES: [&str; 2] = ["__gnu_cxx", "__cxxabiv1"];
    if path[root.len()..].starts_with("::") {
        return CRATES.contains(&root) || NAMESPACES.contains(&root);
    }
    is_primitive(root)
}

/// The types of the Rust language itself.
fn is_primitive(word: &str) -> bool {
    const OTHERS: [&str; 5] = ["bool", "char", "str", "isize", "usize"];
    let is_number = |word: &str| {
        let digits = word.strip_prefix(['u', 'i', 'f']);
        digits.is_some_and(|digits| matches!(digits, "8" | "16" | "32" | "64" | "128"))
    };
    word.is_empty() || OTHERS.contains(&word) || is_number(word)
}

/// Whether a type is a parameter of generic code, as `T` or `&mut I`.
fn is_parameter(of: &str) -> bool {
    let word = of.trim_start_matches(['&', '*', ' ']).trim_start_matches("mut ").trim_start_matches("const ");
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// Place of the bracket that closes a list whose opening bracket was taken off; all of it where none does.
fn end_of_list(inside: &str) -> usize {
    let mut depth = 1usize;
    let bytes = inside.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function type closes none.
            b'>' if at > 0 && matches!(bytes[at - 1], b'-' | b'=') => {}
            b'>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    inside.len()
}

/// `T as Trait`, outside of brackets.
fn split_as(inside: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && inside[at..].starts_with(" as ") => {
                return Some((&inside[..at], &inside[at + 4..]));
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
    fn the_place_of_the_source_decides() {
        for file in [
            "/rustc/1159e78c4747b02ef996e55082b704c09b970588/library/core/src/num/mod.rs",
            "/rustc/1.85.0/library/core/src/num/mod.rs",
            "/home/me/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs",
            "/usr/src/rustc-1.85.0/library/std/src/rt.rs",
            "/build/rustc-1.91.0-src/library/core/src/hint.rs",
            "/rust/deps/hashbrown-0.15.5/src/raw/mod.rs",
            "/usr/include/c++/14/bits/stl_vector.h",
            "/usr/include/x86_64-linux-gnu/c++/14/bits/c++config.h",
            "/usr/lib/llvm-19/include/c++/v1/__algorithm/sort.h",
            "/usr/include/x86_64-linux-gnu/bits/string_fortified.h",
            "/usr/lib/gcc/x86_64-linux-gnu/14/include/emmintrin.h",
            "/usr/lib/llvm-19/lib/clang/19/include/avx2intrin.h",
            "external/gcc/include/c++/13.2.0/functional",
        ] {
            assert!(is_library("app::f", Some(file)), "{file}");
        }
        for file in [
            "/home/me/app/src/main.rs",
            "src/main.rs",
            "/home/me/library/core/src/lib.rs",
            "/home/me/rustc/library/app.rs",
            "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/hashbrown-0.15.0/src/map.rs",
            "/usr/include/boost/functional/hash.hpp",
            "/usr/include/eigen3/Eigen/src/Core/Dot.h",
            "/home/me/app/include/c.h",
            "/home/me/clang/include/x.h",
            "",
        ] {
            assert!(!is_library("app::f", Some(file)), "{file}");
        }
        assert!(is_library("core::num::f", Some("library/core/src/num/mod.rs")));
        assert!(!is_library("app::f", Some("library/core/src/num/mod.rs")));
        assert!(!is_library("std::f", Some("/home/me/app/src/main.rs")), "the path knows better");
    }

    #[test]
    fn without_a_path_the_name_decides() {
        for name in [
            "core::hint::black_box",
            "core::num::<impl u64>::wrapping_add",
            "<u64>::wrapping_add",
            "<f64 as core::ops::arith::AddAssign>::add_assign",
            "<[T]>::sort_unstable",
            "<alloc::vec::Vec<app::Row> as core::ops::index::Index<usize>>::index",
            "<T as core::convert::Into<U>>::into",
            "<&mut I as core::iter::traits::iterator::Iterator>::next",
            "<fn(u8) -> u8 as core::ops::function::FnOnce<(u8,)>>::call_once",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
            "void std::__invoke_impl<void, main::{lambda()#1}>(std::__invoke_other, main::{lambda()#1}&&)",
            "__gnu_cxx::__normal_iterator<int*, std::vector<int> >::operator++()",
        ] {
            assert!(has_library_name(name), "{name}");
        }
        for name in [
            "app::core::f",
            "stdx::f",
            "std",
            "main",
            "operator()",
            "<app::Row as core::clone::Clone>::clone",
            "<I as app::Extension>::extend",
            "<alloc::vec::Vec<u8> as app::Parse>::parse",
            "main::{lambda()#1}::operator()() const",
            "std_like(std::string)",
            "int app::count<std::string>(std::string const&)",
        ] {
            assert!(!has_library_name(name), "{name}");
        }
    }

    #[test]
    fn malformed_names_are_no_library() {
        for name in ["", "<", "<<<", "< as >::f", "<\u{fffd}", "((((", "> > >", "<T as", "std:", "::"] {
            assert!(!is_library(name, Some(name)) || name.is_empty(), "{name}");
            has_library_name(name);
        }
    }

    #[test]
    fn what_leads_to_main_is_runtime() {
        assert!(is_runtime("_start", "app") && is_runtime("__libc_start_call_main", "libc.so.6"));
        assert!(is_runtime("qsort_r", "libc.so.6") && is_runtime("__rust_try", "app"));
        assert!(!is_runtime("main", "app") && !is_runtime("started", "libcrypto.so.3"));
    }
}
