//! The lanes: which kernels on which machines.

/// A kernel on an emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lane {
    /// The oldest supported kernel
    #[value(name = "x86_64-6.1")]
    X86_64Linux6_1,
    /// The newest kernel in Debian 12
    #[value(name = "x86_64-6.12")]
    X86_64Linux6_12,
    /// The oldest supported kernel, with a PMU that counts cycles
    #[value(name = "aarch64-6.1")]
    Aarch64Linux6_1,
    /// The newest kernel in Debian 12, with a PMU that counts cycles
    #[value(name = "aarch64-6.12")]
    Aarch64Linux6_12,
}

impl Lane {
    /// Every lane, the quickest first.
    pub(crate) const ALL: [Self; 4] =
        [Self::X86_64Linux6_1, Self::X86_64Linux6_12, Self::Aarch64Linux6_1, Self::Aarch64Linux6_12];

    /// As it is named on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64Linux6_1 => "x86_64-6.1",
            Self::X86_64Linux6_12 => "x86_64-6.12",
            Self::Aarch64Linux6_1 => "aarch64-6.1",
            Self::Aarch64Linux6_12 => "aarch64-6.12",
        }
    }

    /// The machine that is emulated.
    pub(super) fn machine(self) -> Machine {
        match self {
            Self::X86_64Linux6_1 | Self::X86_64Linux6_12 => Machine::X86_64,
            Self::Aarch64Linux6_1 | Self::Aarch64Linux6_12 => Machine::Aarch64,
        }
    }

    /// Debian's package that depends on the newest build of the kernel.
    pub(super) fn kernel_package(self) -> &'static str {
        match self {
            Self::X86_64Linux6_1 => "linux-image-cloud-amd64",
            Self::X86_64Linux6_12 => "linux-image-6.12-cloud-amd64",
            Self::Aarch64Linux6_1 => "linux-image-cloud-arm64",
            Self::Aarch64Linux6_12 => "linux-image-6.12-cloud-arm64",
        }
    }
}

/// What is emulated. Only the aarch64 one has a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// Debian's name of the architecture.
    pub(super) fn debian_architecture(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Rust's name of the target.
    pub(super) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The C compiler for it, as Debian names it; on the host's own architecture it comes with gcc.
    pub(super) fn c_compiler(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu-gcc",
            Self::Aarch64 => "aarch64-linux-gnu-gcc",
        }
    }
}
