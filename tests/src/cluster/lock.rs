//! One cluster on a machine: who has its bridge and its ports.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::layout::Layout;
use super::process;

const PATH: &str = "/run/boxes-cluster.lock";

/// Held while a cluster is started or torn down. The file names the state folder of the last cluster.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Waits for whoever holds it, and refuses where another cluster than `layout`'s runs.
    pub(crate) fn acquire(layout: &Layout) -> Result<Self> {
        let mut lock = Self {
            file: locked_file().with_context(|| format!("cannot lock {PATH}"))?,
        };
        let owner = lock.owner()?;
        if let Some(owner) = owner.filter(|owner| owner != layout.root()) {
            let running = Layout::new(owner.clone()).is_ok_and(|other| {
                process::records(&other)
                    .iter()
                    .any(|(_, it)| it.is_running())
            });
            if running {
                bail!(
                    "another cluster runs on this machine, with the state folder {0}: use it, or \
                     end it with BOXES_STATE={0} and the command down",
                    owner.display()
                );
            }
        }
        Ok(lock)
    }

    fn owner(&mut self) -> Result<Option<PathBuf>> {
        let mut text = String::new();
        self.file
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read {PATH}"))?;
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    /// Writes who has the machine now.
    pub(crate) fn own(&mut self, layout: &Layout) -> Result<()> {
        let root = layout.root().as_os_str().as_encoded_bytes();
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(root))
            .with_context(|| format!("cannot write {PATH}"))
    }

    /// Lets go and leaves nothing. Who waits for the lock finds the file gone and makes a new one.
    pub(crate) fn remove(self) -> Result<()> {
        let removed = fs::remove_file(PATH).with_context(|| format!("cannot delete {PATH}"));
        drop(self.file);
        removed
    }
}

/// Opens and locks the file, again if it was deleted while this waited.
fn locked_file() -> std::io::Result<File> {
    loop {
        let options = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(PATH)?;
        options.lock()?;
        let current = Path::new(PATH).metadata().ok().map(|found| found.ino());
        if current == Some(options.metadata()?.ino()) {
            return Ok(options);
        }
    }
}
