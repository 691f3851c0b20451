//! Debian packages of any architecture, fetched by apt beside the host's own package database.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{run as run_command, stdout_of};

/// apt's view of one architecture, with lists and state of its own. The sources and keys are the host's.
pub(super) struct Packages {
    folder: PathBuf,
    config: PathBuf,
}

impl Packages {
    /// Reads the package lists anew into `folder`.
    pub(super) fn update(folder: &Path, architecture: &str) -> Result<Self> {
        for part in ["lists/partial", "archives/partial"] {
            create_folder(&folder.join(part))?;
        }
        let packages = Self { folder: folder.to_owned(), config: folder.join("apt.conf") };
        write(&folder.join("status"), "")?;
        write(&packages.config, &config(folder, architecture))?;
        if let Err(error) = run_command(packages.apt("apt-get").args(["-qq", "update"])) {
            // One unreachable source among several is no reason to give up: the download will tell.
            eprintln!("xtask: {error:#}; trying to download all the same");
        }
        Ok(packages)
    }

    /// The kernel image that a package without content stands for.
    pub(super) fn kernel_image(&self, meta_package: &str) -> Result<String> {
        let mut package = meta_package.to_owned();
        for _ in 0..MAX_META_PACKAGES {
            let depends = stdout_of(self.apt("apt-cache").args(["depends", &package]))?;
            match kernel_dependency(&depends) {
                Some(image) => package = image.to_owned(),
                None => return Ok(package),
            }
        }
        bail!("the dependencies of {meta_package} lead to no kernel image");
    }

    /// Downloads the newest version of a package and unpacks the files that match `pattern` (as tar's `--wildcards` does) into `to`.
    pub(super) fn unpack(&self, package: &str, pattern: &str, to: &Path) -> Result<()> {
        let download = self.empty_download()?;
        create_folder(to)?;
        eprintln!("xtask: downloading {package}");
        run_command(self.apt("apt-get").args(["-qq", "download", package]).current_dir(&download))?;
        unpack_file(&only_file_in(&download)?, pattern, to)?;
        remove_folder(&download)
    }

    /// Downloads a package with all that it depends on, down to the C library, and unpacks the whole into `to`.
    pub(super) fn unpack_with_dependencies(&self, package: &str, to: &Path) -> Result<()> {
        let download = self.empty_download()?;
        create_folder(&download.join("partial"))?;
        create_folder(to)?;
        eprintln!("xtask: downloading {package} with all that it needs");
        // The status file is empty, so apt takes nothing for installed.
        let mut apt = self.apt("apt-get");
        apt.arg("-o").arg(format!("Dir::Cache::archives={}", download.display()));
        run_command(apt.args([
            "-qq",
            "-y",
            "--no-install-recommends",
            "--download-only",
            "install",
            package,
        ]))?;
        for file in files_with_prefix(&download, "").filter(|file| file.is_file()) {
            run_command(Command::new("dpkg-deb").arg("--extract").arg(file).arg(to))?;
        }
        remove_folder(&download)
    }

    /// A folder for downloads. What an earlier run left in it may be another version.
    fn empty_download(&self) -> Result<PathBuf> {
        let download = self.folder.join("download");
        let _ = fs::remove_dir_all(&download);
        create_folder(&download)?;
        Ok(download)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.config);
        command
    }
}

/// Debian's packages lead to an image in two steps.
const MAX_META_PACKAGES: usize = 4;

fn config(folder: &Path, architecture: &str) -> String {
    let folder = folder.display();
    format!(
        "APT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         Dir::State \"{folder}\";\n\
         Dir::State::Lists \"{folder}/lists\";\n\
         Dir::State::status \"{folder}/status\";\n\
         Dir::Cache \"{folder}\";\n\
         Dir::Cache::archives \"{folder}/archives\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Debug::NoLocking \"true\";\n"
    )
}

fn kernel_dependency(depends: &str) -> Option<&str> {
    depends
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("Depends: "))
        .find(|package| package.starts_with("linux-image-"))
}

fn unpack_file(package: &Path, pattern: &str, to: &Path) -> Result<()> {
    let mut reader = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("`dpkg-deb` cannot be started")?;
    let files = reader.stdout.take().context("the output of `dpkg-deb` cannot be read")?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "-f", "-", "-C"]).arg(to).args(["--wildcards", pattern]).stdin(files);
    let unpacked = run_command(&mut tar);
    let status = reader.wait().context("`dpkg-deb` cannot be waited for")?;
    unpacked?;
    ensure!(status.success(), "`dpkg-deb` cannot read {} ({status})", package.display());
    Ok(())
}

/// The single file of a folder whose name begins with `prefix`.
pub(super) fn only_file_with_prefix(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let mut files = files_with_prefix(folder, prefix);
    files.next().filter(|_| files.next().is_none())
}

fn files_with_prefix(folder: &Path, prefix: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(move |file| {
        file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix))
    })
}

fn only_file_in(folder: &Path) -> Result<PathBuf> {
    only_file_with_prefix(folder, "").with_context(|| format!("{} holds no single file", folder.display()))
}

fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))
}

fn remove_folder(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

#[cfg(test)]
mod tests {
    use super::kernel_dependency;

    #[test]
    fn a_kernel_among_the_dependencies() {
        let meta = "linux-image-cloud-arm64\n  Depends: linux-image-6.1.0-57-cloud-arm64\n";
        assert_eq!(kernel_dependency(meta), Some("linux-image-6.1.0-57-cloud-arm64"));
        let image = "linux-image-6.1.0-57-cloud-arm64\n |Depends: kmod\n  Suggests: linux-image-dbg\n";
        assert_eq!(kernel_dependency(image), None);
    }
}
