//! The memory that bpfprof takes in the guest, in its own process and in the kernel, as files of `/proc` show it.

use std::collections::HashMap;

use anyhow::{Context, Result};

use crate::proc_fields::{bytes, number};

/// Memory in bytes, while bpfprof samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// Its largest resident memory.
    pub(super) peak: u64,
    /// Its resident memory.
    pub(super) resident: u64,
    /// Its BPF maps and programs.
    pub(super) bpf: u64,
    /// By how much less memory was available than before, all of the above included.
    pub(super) taken: u64,
    /// By how much the kernel's slab caches grew.
    pub(super) slab: u64,
}

/// Begins the line in front of each file; its name follows.
const FILE: &str = "file ";

impl Memory {
    /// Reads what a trial wrote: `meminfo` from `before` and `during`, and bpfprof's `status` and `fdinfo`.
    pub(super) fn read(text: &str) -> Result<Self> {
        let files = files(text);
        let file = |name: &str| files.get(name).copied().with_context(|| format!("{name} was not written"));
        let (before, during, status) = (file("before")?, file("during")?, file("status")?);
        let field = |file: &str, name: &str| bytes(file, name).with_context(|| format!("no {name}"));
        Ok(Self {
            peak: field(status, "VmHWM")?,
            resident: field(status, "VmRSS")?,
            bpf: bpf_bytes(file("fdinfo")?),
            taken: field(before, "MemAvailable")?.saturating_sub(field(during, "MemAvailable")?),
            slab: field(during, "Slab")?.saturating_sub(field(before, "Slab")?),
        })
    }
}

fn files(text: &str) -> HashMap<&str, &str> {
    let parts = text.split(FILE).skip(1);
    parts.filter_map(|part| part.split_once('\n')).map(|(name, content)| (name.trim(), content)).collect()
}

/// What `memlock` says of each map and program (Documentation/filesystems/proc.rst has fdinfo; the fields are those of `bpf_map_show_fdinfo` and
/// `bpf_prog_show_fdinfo`), once however many descriptors it has.
fn bpf_bytes(fdinfo: &str) -> u64 {
    // Each descriptor begins with its position.
    let descriptors = fdinfo.split("pos:").skip(1);
    let sizes: HashMap<_, u64> = descriptors
        .filter_map(|descriptor| {
            let id = (number(descriptor, "map_id"), number(descriptor, "prog_id"));
            Some((id, number(descriptor, "memlock")?))
        })
        .collect();
    sizes.values().sum()
}

#[cfg(test)]
mod tests {
    use super::Memory;

    const TEXT: &str = "file before\nMemAvailable: 1000 kB\nSlab: 50 kB\n\
        file during\nMemAvailable: 900 kB\nSlab: 70 kB\n\
        file status\nVmHWM:\t 60 kB\nVmRSS:\t 40 kB\n\
        file fdinfo\npos:\t0\nflags:\t02\n\
        pos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t7\npos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t7\n\
        pos:\t0\nprog_type:\t7\nmemlock:\t8192\nprog_id:\t7\n";

    #[test]
    fn each_map_and_program_counts_once() {
        let memory = Memory::read(TEXT).unwrap();
        let kb = 1024;
        assert_eq!(
            memory,
            Memory { peak: 60 * kb, resident: 40 * kb, bpf: 12 * kb, taken: 100 * kb, slab: 20 * kb }
        );
    }

    #[test]
    fn a_file_that_is_missing_is_told() {
        let cut = TEXT.split("file fdinfo").next().unwrap();
        assert!(Memory::read(cut).unwrap_err().to_string().contains("fdinfo"));
        assert!(Memory::read(&TEXT.replace("VmRSS", "VmXXX")).is_err());
    }
}
