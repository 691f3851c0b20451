//! Which sections of an ELF file are linkage tables.

/// Jumps to functions of other objects: psABI x86-64 §5.2 and §13.2, lld's for functions that are chosen at run time, and GNU ld's with bounds checks.
pub(crate) const LINKAGE_SECTIONS: [&str; 5] = [".plt", ".plt.sec", ".plt.got", ".iplt", ".plt.bnd"];
