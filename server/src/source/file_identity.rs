//! Which file it is, whatever its name.

use std::fs::Metadata;

/// Identity of a file, independent of its name: device and inode.
pub(super) type Identity = (u64, u64);

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Without inodes only truncation is detected.
#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Identity {
    (0, 0)
}
