//! The folder from which the registry serves: blobs by digest, and a file per name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use super::archive::Archive;
use super::reference::Reference;

/// A folder of images. Programs may add to it while others read.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Adds an archive's blobs, then its names.
    pub(crate) fn add(&self, archive: &Archive) -> Result<()> {
        for (digest, bytes) in &archive.blobs {
            if let Some(path) = self.blob_path(digest).filter(|path| !path.exists()) {
                write(&path, bytes)?;
            }
        }
        for (name, descriptor) in &archive.images {
            write(&self.name_path(name), descriptor.digest.as_bytes())?;
        }
        Ok(())
    }

    /// The digest that a name stands for.
    pub(crate) fn resolve(&self, name: &Reference) -> Option<String> {
        name.is_safe()
            .then(|| fs::read_to_string(self.name_path(name)).ok())?
    }

    /// A blob's content.
    pub(crate) fn blob(&self, digest: &str) -> Option<Vec<u8>> {
        fs::read(self.blob_path(digest)?).ok()
    }

    fn name_path(&self, name: &Reference) -> PathBuf {
        let repository = self
            .folder
            .join("names")
            .join(&name.host)
            .join(&name.repository);
        repository.join("_tags").join(&name.tag)
    }

    /// Where a blob is, if its digest is one: never a path that leaves the folder.
    fn blob_path(&self, digest: &str) -> Option<PathBuf> {
        let hash = digest.strip_prefix("sha256:")?;
        let valid = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| self.folder.join("blobs").join(hash))
    }
}

/// Writes a file that others see whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let partial = path.with_extension(format!("partial-{unique}"));
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&partial, bytes)?;
        fs::rename(&partial, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_its_manifest() {
        let folder = std::env::temp_dir().join(format!("bx-store-{}", std::process::id()));
        let store = Store::new(folder.clone());
        let mut archive = Archive::default();
        let manifest = archive.add_blob(super::super::archive::MANIFEST, b"{}".to_vec());
        let name = Reference::parse("boxes.run/boxes:dev").unwrap();
        archive.images.push((name.clone(), manifest.clone()));
        store.add(&archive).unwrap();
        let found = store.resolve(&name).and_then(|digest| store.blob(&digest));
        let other = store.resolve(&Reference::parse("boxes.run/boxes:other").unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.as_deref(), Some(b"{}".as_slice()));
        assert_eq!(other, None);
    }

    #[test]
    fn a_digest_is_no_path() {
        let store = Store::new(PathBuf::from("/"));
        assert_eq!(store.blob("sha256:../etc/passwd"), None);
        assert_eq!(store.blob("etc/passwd"), None);
    }
}
