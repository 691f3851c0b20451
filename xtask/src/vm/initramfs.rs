//! Writes an initramfs: an uncompressed cpio archive as the kernel reads it (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;

/// An archive that grows. Nothing is taken from the host's file system but the bytes given, so that no device node needs root.
#[derive(Default)]
pub(super) struct Initramfs {
    bytes: Vec<u8>,
    inode: u32,
    folders: BTreeSet<String>,
}

impl Initramfs {
    /// Adds a folder and those above it.
    pub(super) fn folder(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        if self.folders.insert(path.to_owned()) {
            self.entry(path, S_IFDIR | 0o755, (0, 0), &[]);
        }
    }

    /// Adds a file that may be executed, and the folders above it. The path has no slash in front.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, S_IFREG | 0o755, (0, 0), content);
    }

    /// Adds a character device by its major and minor number.
    pub(super) fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, S_IFCHR | 0o600, (major, minor), &[]);
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        let [name_size, size] = [path.len() + 1, content.len()];
        let links = 1;
        let (owner, group, time, check) = (0, 0, 0, 0);
        self.bytes.extend_from_slice(b"070701");
        self.bytes.extend_from_slice(
            format!(
                "{:08x}{mode:08x}{owner:08x}{group:08x}{links:08x}{time:08x}{size:08x}{:08x}{:08x}{:08x}{:08x}{name_size:08x}{check:08x}",
                self.inode, 0, 0, device.0, device.1
            )
            .as_bytes(),
        );
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Kinds of files, from include/uapi/linux/stat.h.
const S_IFCHR: u32 = 0o020_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;

#[cfg(test)]
mod tests {
    use super::Initramfs;

    #[test]
    fn folders_come_first_and_once() {
        let mut archive = Initramfs::default();
        archive.program("lib/a/x", b"");
        archive.program("lib/a/y", b"");
        let text = String::from_utf8(archive.finish()).unwrap();
        let positions: Vec<_> =
            ["lib\0", "lib/a\0", "lib/a/x\0", "lib/a/y\0"].map(|path| text.find(path)).into();
        assert!(positions.iter().all(Option::is_some) && positions.is_sorted());
        assert_eq!(text.matches("lib/a\0").count(), 1);
    }

    #[test]
    fn headers_and_contents_lie_where_the_kernel_looks() {
        let mut archive = Initramfs::default();
        archive.program("init", b"hello");
        let bytes = archive.finish();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000081ed");
        assert_eq!(&bytes[54..62], b"00000005");
        assert_eq!(&bytes[94..102], b"00000005");
        assert_eq!(&bytes[110..115], b"init\0");
        assert_eq!(&bytes[116..124], b"hello\0\0\0");
        assert_eq!(&bytes[124..130], b"070701");
        assert!(bytes.len().is_multiple_of(4) && bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
    }
}
