//! Names for the code of the kernel and its modules.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::vsyscall::{self, VSYSCALL};
use crate::types::KernelAddress;

/// Name of the object of kernel functions that are in no module.
pub(super) const KERNEL: &str = "[kernel]";

/// The kernel's functions at the addresses asked for.
pub(super) struct KernelNames {
    functions: HashMap<KernelAddress, String>,
    modules: Modules,
    /// Where the kernel's code begins; `None` where the kernel does not say.
    base: Option<u64>,
    /// Why there are no names at all, if so.
    pub(super) missing: Option<String>,
}

impl KernelNames {
    /// Function at this address.
    pub(super) fn function(&self, address: KernelAddress) -> Option<&str> {
        if let Some(offset) = vsyscall::offset(address) {
            return vsyscall::function(offset);
        }
        self.functions.get(&address).map(String::as_str)
    }

    /// Place of this address from the beginning of the kernel's code, which is another at each boot and known to root alone; 0 where it is not
    /// known.
    pub(super) fn place(&self, address: KernelAddress) -> u64 {
        match (vsyscall::offset(address), self.base) {
            (Some(_), _) => address.0,
            (None, Some(base)) => address.0.wrapping_sub(base),
            (None, None) => 0,
        }
    }

    /// Module at this address in brackets, or [`KERNEL`].
    pub(super) fn object(&self, address: KernelAddress) -> String {
        if vsyscall::offset(address).is_some() {
            return VSYSCALL.into();
        }
        self.modules.at(address).map_or_else(|| KERNEL.to_string(), |name| format!("[{name}]"))
    }
}

/// Resolves these addresses from `/proc/kallsyms`, which holds modules and BPF programs too.
pub(super) fn resolve(addresses: &mut Vec<KernelAddress>) -> KernelNames {
    addresses.sort_unstable();
    addresses.dedup();
    let raw: Vec<u64> = addresses.iter().map(|address| address.0).collect();
    let source = Source::Kernel(Kernel { vmlinux: MaybeDefault::None, ..Kernel::default() });
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let symbolized = if raw.is_empty() {
        Vec::new()
    } else {
        symbolizer.symbolize(&source, Input::AbsAddr(&raw)).unwrap_or_default()
    };
    let functions: HashMap<KernelAddress, String> = addresses
        .iter()
        .zip(&symbolized)
        .filter_map(|(&address, symbolized)| match symbolized {
            Symbolized::Sym(symbol) => Some((address, symbol.name.to_string())),
            Symbolized::Unknown(_) => None,
        })
        .collect();
    let missing = (!addresses.is_empty() && functions.is_empty()).then(why_missing);
    KernelNames { functions, modules: Modules::read(), base: begin_of_code(), missing }
}

/// Where the kernel was loaded, by its first symbol of code. Without leave to know it there are only zeros.
fn begin_of_code() -> Option<u64> {
    let lines = BufReader::new(File::open("/proc/kallsyms").ok()?).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        let address = line.strip_suffix(" T _text").or_else(|| line.strip_suffix(" T _stext"))?;
        u64::from_str_radix(address, 16).ok()
    });
    address.filter(|&address| address != 0)
}

fn why_missing() -> String {
    let restrict = fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    match restrict.trim() {
        "1" | "2" => format!(
            "kernel functions have no names: the kernel hides its addresses (kernel.kptr_restrict = {}); run as root with `sysctl kernel.kptr_restrict=0`",
            restrict.trim()
        ),
        _ => "kernel functions have no names: /proc/kallsyms shows none".into(),
    }
}

/// Address ranges of the loaded modules.
struct Modules(Vec<(u64, u64, String)>);

impl Modules {
    fn read() -> Self {
        let text = fs::read_to_string("/proc/modules").unwrap_or_default();
        Self(text.lines().filter_map(module).collect())
    }

    fn at(&self, address: KernelAddress) -> Option<&str> {
        let holding =
            self.0.iter().find(|(start, len, _)| address.0.checked_sub(*start).is_some_and(|at| at < *len));
        holding.map(|(_, _, name)| name.as_str())
    }
}

/// A line of `/proc/modules`: name, size, use count, users, state, address.
fn module(line: &str) -> Option<(u64, u64, String)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, len, _, _, _, address, ..] = fields[..] else { return None };
    let start = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    (start != 0).then_some((start, len.parse().ok()?, name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_cover_their_range() {
        let modules = Modules(
            ["ext4 1024 1 - Live 0xffffffffc0000000", "hidden 64 0 - Live 0x0000000000000000"]
                .into_iter()
                .filter_map(module)
                .collect(),
        );
        assert_eq!(modules.at(KernelAddress(0xffff_ffff_c000_03ff)), Some("ext4"));
        assert_eq!(modules.at(KernelAddress(0xffff_ffff_c000_0400)), None);
        assert_eq!(modules.at(KernelAddress(0x10)), None);
    }
}
