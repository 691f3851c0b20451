//! What makes code at run time, told by the program and its libraries.

use std::fs;

use super::super::{directory, scan, short_name};
use crate::types::Tgid;

/// A runtime that compiles while programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// Node.js and its like: V8.
    Node,
    /// A JVM.
    Java,
    /// CPython.
    Python,
    /// .NET.
    DotNet,
    /// Wasmtime.
    Wasmtime,
    /// LuaJIT.
    LuaJit,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Erlang's and Elixir's.
    Erlang,
    /// Julia.
    Julia,
    /// Another, or not known.
    #[default]
    Other,
}

/// What names of programs and libraries begin with.
const BEGINNINGS: [(&str, Runtime); 21] = [
    ("libjvm.so", Runtime::Java),
    ("java", Runtime::Java),
    ("libcoreclr.so", Runtime::DotNet),
    ("dotnet", Runtime::DotNet),
    ("libnode.so", Runtime::Node),
    ("node", Runtime::Node),
    ("deno", Runtime::Node),
    ("electron", Runtime::Node),
    ("wasmtime", Runtime::Wasmtime),
    ("libwasmtime", Runtime::Wasmtime),
    ("luajit", Runtime::LuaJit),
    ("libluajit", Runtime::LuaJit),
    ("libpython3", Runtime::Python),
    ("python3", Runtime::Python),
    ("libruby", Runtime::Ruby),
    ("ruby", Runtime::Ruby),
    ("php", Runtime::Php),
    ("libphp", Runtime::Php),
    ("beam.smp", Runtime::Erlang),
    ("libjulia", Runtime::Julia),
    ("julia", Runtime::Julia),
];

impl Runtime {
    /// That of a process; to be called while it lives.
    pub(super) fn of(tgid: Tgid) -> Self {
        let program = fs::read_link(directory::of(tgid).join("exe")).unwrap_or_default();
        let program = program.file_name().map(|name| name.as_encoded_bytes().to_vec());
        let libraries = scan::mappings(tgid).into_iter().map(|mapped| short_name(&mapped.path).to_vec());
        Self::by_names(program.into_iter().chain(libraries))
    }

    /// The first that one of these names tells.
    fn by_names(names: impl Iterator<Item = Vec<u8>>) -> Self {
        let names: Vec<Vec<u8>> = names.collect();
        let tells = |beginning: &str| names.iter().any(|name| name.starts_with(beginning.as_bytes()));
        let found = BEGINNINGS.into_iter().find(|(beginning, _)| tells(beginning));
        found.map_or(Self::Other, |(_, runtime)| runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_tell() {
        let of = |names: &[&str]| Runtime::by_names(names.iter().map(|name| name.as_bytes().to_vec()));
        assert_eq!(of(&["node", "libc.so.6"]), Runtime::Node);
        assert_eq!(of(&["nodejs"]), Runtime::Node);
        assert_eq!(of(&["launcher", "libjvm.so"]), Runtime::Java);
        assert_eq!(of(&["python3.12"]), Runtime::Python);
        // A program of Python that loads a JVM: the JVM makes the code.
        assert_eq!(of(&["python3.11", "libjvm.so"]), Runtime::Java);
        assert_eq!(of(&["app", "libc.so.6"]), Runtime::Other);
    }
}
