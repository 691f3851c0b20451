//! Debian packages: which are needed for what, which are missing, installing them.

use std::{path::Path, process::Command, sync::Once};

use anyhow::{Result, anyhow};

use crate::{
    privilege::Privilege,
    process::{answer_of, find_on_path, run},
};

/// What the tests need, by what they use of it.
pub(crate) const FOR_TESTS: &[Package] = &[
    Package { name: "gcc", probe: Probe::Command("gcc") },
    Package { name: "g++", probe: Probe::Command("g++") },
    Package { name: "clang", probe: Probe::Command("clang++") },
    Package { name: "libc6-dev", probe: Probe::File("/usr/include/stdio.h") },
    Package { name: "binutils", probe: Probe::Command("ld") },
    Package { name: "util-linux", probe: Probe::Command("setpriv") },
    Package { name: "util-linux", probe: Probe::Command("unshare") },
    Package { name: "procps", probe: Probe::Command("ps") },
    Package { name: "debuginfod", probe: Probe::Command("debuginfod") },
    Package { name: "musl-tools", probe: Probe::Command("musl-gcc") },
    Package { name: "nodejs", probe: Probe::Command("node") },
    Package { name: "npm", probe: Probe::Command("npm") },
    Package { name: "chromium", probe: Probe::Command("chromium") },
    Package { name: "default-jdk-headless", probe: Probe::Command("javac") },
    Package { name: "libcap2-bin", probe: Probe::Command("setcap") },
    Package { name: "xz-utils", probe: Probe::Command("xz") },
    Package { name: "dwz", probe: Probe::Command("dwz") },
    Package { name: "golang-go", probe: Probe::Command("go") },
    Package { name: "linux-perf", probe: Probe::Command("perf") },
];

/// What building the BPF programs needs: a compiler with its library's source, and LLVM of the same version to link bpf-linker with.
pub(crate) const FOR_EBPF: &[Package] = &[
    Package { name: "gcc", probe: Probe::Command("gcc") },
    Package { name: "libc6-dev", probe: Probe::File("/usr/include/stdio.h") },
    Package { name: "rustc-web", probe: Probe::Installed },
    Package { name: "rust-web-src", probe: Probe::Installed },
    Package { name: "rust-web-clippy", probe: Probe::Installed },
    Package { name: "llvm-22-dev", probe: Probe::Installed },
    Package { name: "libzstd-dev", probe: Probe::Installed },
    Package { name: "zlib1g-dev", probe: Probe::Installed },
];

/// What the lanes on an emulated x86_64 machine need.
pub(crate) const FOR_X86_64_VM: &[Package] = &[
    Package { name: "gcc", probe: Probe::Command("x86_64-linux-gnu-gcc") },
    Package { name: "libc6-dev", probe: Probe::File("/usr/include/stdio.h") },
    Package { name: "binutils", probe: Probe::Command("strip") },
    Package { name: "libc-bin", probe: Probe::Command("ldd") },
];

/// What the lanes on an emulated aarch64 machine need: compilers for it, too.
pub(crate) const FOR_AARCH64_VM: &[Package] = &[
    Package { name: "rustc-web", probe: Probe::Installed },
    Package { name: "gcc-aarch64-linux-gnu", probe: Probe::Command("aarch64-linux-gnu-gcc") },
    Package { name: "libc6-dev-arm64-cross", probe: Probe::File("/usr/aarch64-linux-gnu/lib/libc.a") },
];

/// A package and the sign that what it brings is there.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    probe: Probe,
}

enum Probe {
    /// A command on PATH, from wherever.
    Command(&'static str),
    /// A file, from wherever.
    File(&'static str),
    /// The Debian package itself.
    Installed,
}

impl Package {
    fn is_missing(&self) -> bool {
        match self.probe {
            Probe::Command(name) => find_on_path(name).is_none(),
            Probe::File(path) => !Path::new(path).exists(),
            Probe::Installed => {
                let status =
                    answer_of(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", self.name]));
                status.as_deref() != Some("installed")
            }
        }
    }
}

/// The names of the packages that are missing, each once.
pub(crate) fn missing(packages: &[Package]) -> Vec<&'static str> {
    let mut names: Vec<_> =
        packages.iter().filter(|package| package.is_missing()).map(|package| package.name).collect();
    names.dedup();
    names
}

/// Installs packages by apt-get and says which. Nothing is ever removed for them.
pub(crate) fn install(names: &[&str], privilege: Privilege) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let list = names.join(" ");
    if find_on_path("apt-get").is_none() {
        return Err(anyhow!(
            "these Debian packages are missing, and there is no apt-get to install them: {list}"
        ));
    }
    let apt_get = || {
        privilege
            .command("env")
            .map(|mut command| {
                command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
                command
            })
            .map_err(|reason| {
                anyhow!("these Debian packages are missing and cannot be installed, because {reason}: {list}")
            })
    };
    eprintln!("xtask: installing the Debian packages {list}");
    static UPDATED: Once = Once::new();
    let mut update = apt_get()?;
    UPDATED.call_once(|| {
        // One unreachable source among several is no reason to give up: the installation will tell.
        if let Err(error) = run(update.args(["update", "-q"])) {
            eprintln!("xtask: {error:#}; trying to install all the same");
        }
    });
    run(apt_get()?.args(["install", "-q", "-y", "--no-install-recommends", "--no-remove"]).args(names))
}
