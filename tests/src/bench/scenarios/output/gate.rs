//! A gate at which boxes wait: a folder of this machine, which is their node.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A gate. Its folder goes with it.
#[derive(Debug)]
pub(super) struct Gate {
    folder: PathBuf,
}

impl Gate {
    /// A closed one. That of a run that was killed is removed.
    pub(super) fn make(parent: &Path) -> Result<Self> {
        let folder = parent.join("gate");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets all begin.
    pub(super) fn open(&self) -> Result<()> {
        fs::write(self.folder.join("open"), "").context("cannot open the gate")
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
