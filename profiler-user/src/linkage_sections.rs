//! Which sections of an ELF file are linkage tables.

/// Jumps to functions of other objects: psABI x86-64 §5.2 and §13.2, and lld's for functions that are chosen at run time.
pub(crate) const LINKAGE_SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];
