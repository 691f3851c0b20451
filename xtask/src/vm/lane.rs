//! The lanes: which kernels on which machines.

use clap::{ValueEnum, builder::PossibleValue};

/// A kernel on an emulated machine: the oldest supported kernel, or the newest in Debian 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    X86_64Linux6_1,
    X86_64Linux6_12,
    Aarch64Linux6_1,
    Aarch64Linux6_12,
    /// The oldest kernel on a machine whose time is made of instructions: what its PMU counts is known beforehand.
    Aarch64Pmu,
    /// A machine with many CPUs.
    X86_64Smp,
}

impl Lane {
    /// Every lane, the quickest first.
    pub(crate) const ALL: [Self; 6] = [
        Self::X86_64Linux6_1,
        Self::X86_64Linux6_12,
        Self::Aarch64Linux6_1,
        Self::Aarch64Linux6_12,
        Self::Aarch64Pmu,
        Self::X86_64Smp,
    ];

    /// As it is named on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64Linux6_1 => "x86_64-6.1",
            Self::X86_64Linux6_12 => "x86_64-6.12",
            Self::Aarch64Linux6_1 => "aarch64-6.1",
            Self::Aarch64Linux6_12 => "aarch64-6.12",
            Self::Aarch64Pmu => "aarch64-pmu",
            Self::X86_64Smp => "x86_64-smp",
        }
    }

    /// The machine that is emulated.
    pub(super) fn machine(self) -> Machine {
        match self {
            Self::X86_64Linux6_1 | Self::X86_64Linux6_12 | Self::X86_64Smp => Machine::X86_64,
            Self::Aarch64Linux6_1 | Self::Aarch64Linux6_12 | Self::Aarch64Pmu => Machine::Aarch64,
        }
    }

    /// What moves time on in the guest.
    pub(super) fn time(self) -> Time {
        match self {
            Self::Aarch64Pmu => Time::Instructions,
            _ => Time::Host,
        }
    }

    /// CPUs of the guest. Where instructions make up the time there is one: with more the kernel takes the waiting for the others for a lockup.
    pub(super) fn cpus(self) -> u32 {
        match self {
            Self::Aarch64Pmu => 1,
            Self::X86_64Smp => SMP_CPUS,
            _ => 2,
        }
    }

    /// Samples a second on each CPU that the machine bears: the Arm PMU loses samples at higher rates, and many CPUs share those of the host.
    pub(super) fn hertz(self) -> u32 {
        match (self, self.machine()) {
            (Self::X86_64Smp, _) | (_, Machine::Aarch64) => 99,
            (_, Machine::X86_64) => 499,
        }
    }

    /// Debian's package that depends on the newest build of the kernel.
    pub(super) fn kernel_package(self) -> &'static str {
        match self {
            Self::X86_64Linux6_1 => "linux-image-cloud-amd64",
            Self::X86_64Linux6_12 | Self::X86_64Smp => "linux-image-6.12-cloud-amd64",
            Self::Aarch64Linux6_1 | Self::Aarch64Pmu => "linux-image-cloud-arm64",
            Self::Aarch64Linux6_12 => "linux-image-6.12-cloud-arm64",
        }
    }
}

/// CPUs of the lane with many.
pub(super) const SMP_CPUS: u32 = 16;

impl ValueEnum for Lane {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

/// What moves time on in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The host's clock, so that a busy host is seen in the guest.
    Host,
    /// The guest's own instructions, of four nanoseconds each.
    Instructions,
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
