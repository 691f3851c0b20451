//! Where things lie in the checkout.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The checkout and its folder for build results.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the workspace that xtask belongs to; `CARGO_TARGET_DIR` is honoured.
    pub(crate) fn find() -> Result<Self> {
        // Cargo's variable at run time: a checkout that was moved may still hold an older xtask binary.
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir
            .parent()
            .unwrap_or(&manifest_dir)
            .canonicalize()
            .with_context(|| format!("the workspace of {} cannot be found", manifest_dir.display()))?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => env::current_dir().context("the current folder is gone")?.join(dir),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder of the ordinary build.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The root that `cargo install --root` gets for tools of the build. It does not follow `CARGO_TARGET_DIR`: one copy is enough.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("target/tools")
    }

    /// The release binary of bpfprof.
    pub(crate) fn bpfprof(&self) -> PathBuf {
        self.target.join("release/bpfprof")
    }

    /// Cargo's target folder for the workloads, which are built with other flags than the rest.
    pub(crate) fn workloads_target(&self) -> PathBuf {
        self.target.join("workloads")
    }

    /// The folder of the built workloads.
    pub(crate) fn workloads(&self) -> PathBuf {
        self.workloads_target().join("release")
    }

    /// Cargo's target folder for the workloads without frame pointers.
    pub(crate) fn workloads_without_frame_pointers_target(&self) -> PathBuf {
        self.target.join("workloads-nofp")
    }

    /// The folder of the workloads without frame pointers.
    pub(crate) fn workloads_without_frame_pointers(&self) -> PathBuf {
        self.workloads_without_frame_pointers_target().join("release")
    }

    /// The BPF object kept in the repository.
    pub(crate) fn kept_object(&self) -> PathBuf {
        self.root.join("profiler-user/bpf/bpfprof.bpf.o")
    }

    /// The text file that names the tool chain of the kept object.
    pub(crate) fn kept_toolchain(&self) -> PathBuf {
        self.root.join("profiler-user/bpf/bpfprof.bpf.toolchain")
    }
}
