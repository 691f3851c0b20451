//! Names that stay the same from build to build.

use crate::function_parts;

/// The name without what compilers and linkers number: hashes, clones, addresses.
#[must_use]
pub fn comparable(name: &str) -> String {
    let mut name = function_parts::split(name).0;
    // A frame without a name is the object's.
    if name.starts_with('[')
        && let Some((object, _)) = name.rsplit_once("+0x")
    {
        return format!("{object}]");
    }
    if let Some((path, last)) = name.rsplit_once("::")
        && last.len() == 17
        && last.starts_with('h')
        && is_hex(&last[1..])
    {
        name = path;
    }
    without_disambiguators(name)
}

/// `app[0123456789abcdef]::f` is `app::f`.
fn without_disambiguators(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        match from.find(']') {
            Some(close) if (8..=16).contains(&(close - 1)) && is_hex(&from[1..close]) => {
                rest = &from[close + 1..];
            }
            _ => {
                out.push('[');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_build_to_build_is_left_out() {
        for (name, same) in [
            ("app::run::h0123456789abcdef", "app::run"),
            ("app::run", "app::run"),
            ("app[0123456789abcdef]::run", "app::run"),
            ("<[u8] as app::Sum>::sum", "<[u8] as app::Sum>::sum"),
            ("run.llvm.1234567890", "run"),
            ("run.constprop.0.cold", "run"),
            ("std::f32.rs", "std::f32.rs"),
            ("[libx.so+0x12ab]", "[libx.so]"),
            ("[unknown]", "[unknown]"),
            ("Map<[abcdef01; 3]>::x", "Map<[abcdef01; 3]>::x"),
        ] {
            assert_eq!(comparable(name), same);
        }
    }
}
