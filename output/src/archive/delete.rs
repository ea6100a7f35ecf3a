//! The end of a Box's output.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use super::error::{Error, Result};
use super::key::Uid;
use super::layout::{self, SegmentName};
use super::store::Archive;

impl Archive {
    /// When anything of a Box was last written; `None` if nothing is there.
    ///
    /// # Errors
    /// The archive does not answer.
    pub async fn newest(&self, box_uid: &Uid) -> Result<Option<SystemTime>> {
        let objects = self.objects(box_uid).await?;
        let newest = objects.iter().map(|object| object.last_modified).max();
        Ok(newest.map(SystemTime::from))
    }

    /// Deletes all output of a Box. Deleting what is gone is no error.
    ///
    /// # Errors
    /// Something is of a version that this build does not know: then all is left. Or the archive does
    /// not answer, or refuses: a part may be left, and another try removes it.
    pub async fn delete(&self, box_uid: &Uid) -> Result<()> {
        let objects = self.objects(box_uid).await?;
        let objects: Vec<Path> = objects.into_iter().map(|object| object.location).collect();
        self.check_versions(&objects).await?;
        // The label goes last: while anything is left, it is known whose it is.
        let (label, others): (Vec<_>, Vec<_>) = objects
            .into_iter()
            .partition(|path| path.filename() == Some(layout::LABEL));
        self.delete_all(others).await?;
        self.delete_all(label).await?;
        self.remove_folder(box_uid).await
    }

    async fn objects(&self, box_uid: &Uid) -> Result<Vec<ObjectMeta>> {
        let folder = layout::box_folder(&self.root, box_uid);
        Ok(self.store.list(Some(&folder)).try_collect().await?)
    }

    /// Fails if another build wrote here. The last segment of a run is of the newest build.
    async fn check_versions(&self, objects: &[Path]) -> Result<()> {
        let mut last = BTreeMap::new();
        for path in objects {
            match path.filename() {
                Some(layout::MANIFEST) => drop(self.manifest_at(path).await?),
                Some(name) if SegmentName::parse(name).is_some() => {
                    let folder = path.parts().rev().skip(1).collect::<Vec<_>>();
                    let last = last.entry(folder).or_insert(path);
                    *last = (*last).max(path);
                }
                Some(_) | None => {}
            }
        }
        for path in last.into_values() {
            // A segment that is damaged is no reason to keep it.
            if let Err(error @ Error::UnknownVersion { .. }) = self.head_at(path).await {
                return Err(error);
            }
        }
        Ok(())
    }

    /// In a file system, folders and unfinished files are left.
    async fn remove_folder(&self, box_uid: &Uid) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let folder = folder.join(layout::RUNS).join(box_uid.as_str());
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        match removed.unwrap_or(Ok(())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Unavailable {
                message: error.to_string(),
            }),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
