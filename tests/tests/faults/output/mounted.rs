//! A file system of the test's own, which can be full or read-only.

use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use tempfile::TempDir;

use super::archived::Address;
use boxes_tests::harness::PATIENCE;

/// How long until it is tried again to make a file system read-only that is being written to.
const AGAIN: Duration = Duration::from_millis(5);

/// A file system in memory. It is unmounted, and its folder removed, when this is dropped.
pub(crate) struct Mounted(TempDir);

impl Mounted {
    /// Mounts one of this size, such as `256k`; `None` where mounting is not permitted.
    pub(crate) fn new(size: &str) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let data = CString::new(format!("size={size}"))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        match mount("boxes-test", folder.path(), "tmpfs", flags, &*data) {
            Ok(()) => Ok(Some(Self(folder))),
            Err(Errno::PERM) => Ok(None),
            Err(error) => Err(error).context("cannot mount a file system in memory"),
        }
    }

    pub(crate) fn address(&self) -> Address {
        Address::folder(self.path())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives it another size.
    pub(crate) fn resize(&self, size: &str) -> Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(self.path(), flags, format!("size={size}")).context("cannot resize it")
    }

    /// Lets nobody write, once nobody does.
    pub(crate) async fn make_read_only(&self) -> Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
        let remounting = async {
            loop {
                match mount_remount(self.path(), flags, "") {
                    Err(Errno::BUSY) => tokio::time::sleep(AGAIN).await,
                    other => return other.context("cannot make it read-only"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, remounting).await?
    }

    /// Lets everybody write.
    pub(crate) fn make_writable(&self) -> Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(self.path(), flags, "").context("cannot make it writable")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detached, also while it is in use; the folder is then empty and is removed after this.
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}
