//! Parts and copies of functions that compilers make: `f.cold`, `f.part.0`, `f.constprop.1` are `f`.

/// What compilers put behind a dot, before a number: GCC's partitioning, cloning and link-time optimisation, LLVM's promoting.
const NUMBERED: [&str; 5] = ["part", "constprop", "isra", "lto_priv", "llvm"];

/// What stands with a number or without.
const ALONE: [&str; 2] = ["cold", "localalias"];

/// The function that a symbol is a part or a copy of, and what says so; nothing more where it is the function itself.
///
/// Names of C++ may come demangled: `f(int) [clone .part.0]`.
pub(crate) fn split(name: &str) -> (&str, &str) {
    let mut function = name;
    let shorter = |name| without_clone(name).or_else(|| without_dots(name)).filter(|name| !name.is_empty());
    while let Some(shorter) = shorter(function) {
        function = shorter;
    }
    (function, name[function.len()..].trim_start())
}

fn without_clone(name: &str) -> Option<&str> {
    let (function, clone) = name.strip_suffix(']')?.rsplit_once(" [clone ")?;
    // A chain of them, as `.constprop.0.isra.1`.
    let mut rest = clone;
    while !rest.is_empty() {
        rest = without_dots(rest)?;
    }
    Some(function)
}

/// The name without the last part behind a dot; empty where there is nothing else.
fn without_dots(name: &str) -> Option<&str> {
    let (before, last) = name.rsplit_once('.')?;
    let (function, kind) = match before.rsplit_once('.') {
        Some((function, kind)) if is_number(last) => (function, [kind, last]),
        _ => (before, [last, ""]),
    };
    is_kind(kind).then_some(function)
}

/// Whether this is a kind with the number that it needs.
fn is_kind([kind, number]: [&str; 2]) -> bool {
    ALONE.contains(&kind) || (NUMBERED.contains(&kind) && !number.is_empty())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_from_their_functions() {
        for (name, function, part) in [
            ("work", "work", ""),
            ("work.cold", "work", ".cold"),
            ("work.cold.1", "work", ".cold.1"),
            ("work.constprop.0", "work", ".constprop.0"),
            ("work.constprop.0.isra.0", "work", ".constprop.0.isra.0"),
            ("work.part.0.cold", "work", ".part.0.cold"),
            ("work.llvm.1234567890123", "work", ".llvm.1234567890123"),
            ("app::work(int) [clone .part.0]", "app::work(int)", "[clone .part.0]"),
            (
                "app::work(int) [clone .isra.0] [clone .cold]",
                "app::work(int)",
                "[clone .isra.0] [clone .cold]",
            ),
            ("app::work(int) [clone .constprop.0.isra.1]", "app::work(int)", "[clone .constprop.0.isra.1]"),
            // Names with dots of their own.
            ("JS:*burns a.js:1:2", "JS:*burns a.js:1:2", ""),
            ("main.main", "main.main", ""),
            ("main.work.func1", "main.work.func1", ""),
            ("main.work.1", "main.work.1", ""),
            ("main.part", "main.part", ""),
            ("main.cold", "main", ".cold"),
            (".plt", ".plt", ""),
            (".cold", ".cold", ""),
            ("libc.so.6", "libc.so.6", ""),
        ] {
            assert_eq!(split(name), (function, part), "{name}");
        }
    }
}
