//! The archive over an object store: what is written, listed and deleted.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::{Deserialize, Serialize};

use super::cluster::Cluster;
use super::error::{Error, Result};
use super::key::{RunKey, Uid};
use super::layout::{self, SegmentName};
use super::manifest::{Manifest, VERSION, Versioned};
use super::merge::Room;
use super::names::Names;
use super::open::{self, Options};
use super::segment::{self, Entries, HEAD_GUESS, Head, Sealed};
use crate::names::{is_namespace, is_subdomain};

/// Whose output a folder of the archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The UID of the Box.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Label {
    /// Whether it may be asked about: it leads to a Box, and to the one it was read for.
    fn is_sound(&self, box_uid: &Uid) -> bool {
        self.uid == *box_uid && is_namespace(&self.namespace) && is_subdomain(&self.name)
    }
}

/// The output of all boxes.
#[derive(Clone, Debug)]
pub struct Archive {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) root: Path,
    pub(super) folder: Option<PathBuf>,
    creates_only: bool,
    pub(super) cluster: Option<Cluster>,
    pub(super) room: Room,
}

/// What became of an object that was to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is there, now or since an earlier try.
    Done,
    /// Something else is there under its name.
    Taken,
}

impl Archive {
    /// Opens the archive that a URL names: `file:///…`, `s3://bucket/…`, `gs://bucket/…`,
    /// `az://container/…`. Nothing is read or written yet.
    ///
    /// # Errors
    /// The URL or the settings are wrong.
    pub fn open(url: &str, options: &Options) -> Result<Self> {
        let opened = open::open(url, options)?;
        Ok(Self {
            store: opened.store,
            root: opened.root,
            folder: opened.folder,
            creates_only: open::creates_only(options),
            cluster: None,
            room: Room::default(),
        })
    }

    /// An archive over a store that is at hand.
    #[must_use]
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            root: Path::default(),
            folder: None,
            creates_only: true,
            cluster: None,
            room: Room::default(),
        }
    }

    /// Writes a segment, unless there is one of its name.
    pub(crate) async fn put_segment(&self, sealed: &Sealed) -> Result<Put> {
        let name = SegmentName::plain(sealed.head.summary.first);
        let path = layout::segment(&self.root, &sealed.head.run, name);
        self.create(&path, &sealed.bytes).await
    }

    /// Writes what several segments held as one. Whoever merged the same entries wrote the same.
    pub(crate) async fn put_merged(&self, sealed: &Sealed) -> Result<()> {
        let (run, summary) = (&sealed.head.run, &sealed.head.summary);
        let name = SegmentName::merged(summary.first, summary.next);
        let path = layout::segment(&self.root, run, name);
        self.create(&path, &sealed.bytes).await.map(drop)
    }

    pub(crate) async fn remove_segments(&self, run: &RunKey, names: &[SegmentName]) -> Result<()> {
        let paths = names
            .iter()
            .map(|name| layout::segment(&self.root, run, *name));
        self.delete_all(paths.collect()).await
    }

    /// Writes the manifest, unless there is one.
    pub(crate) async fn put_manifest(&self, manifest: &Manifest) -> Result<Put> {
        let path = layout::manifest(&self.root, &manifest.run);
        self.create(&path, &json(manifest)?).await
    }

    /// Says whose output it is.
    ///
    /// # Errors
    /// The archive does not take it.
    pub async fn put_label(&self, label: &Label) -> Result<()> {
        let path = layout::label(&self.root, &label.uid);
        self.create(&path, &json(label)?).await.map(drop)
    }

    /// Whose output it is; `None` if that was never said.
    ///
    /// # Errors
    /// The archive does not answer, or what it says names no Box.
    pub async fn label(&self, box_uid: &Uid) -> Result<Option<Label>> {
        let path = layout::label(&self.root, box_uid);
        let label: Option<Label> = self.get_json(&path).await?;
        match label {
            Some(label) if !label.is_sound(box_uid) => Err(Error::Corrupt {
                what: path.to_string(),
                message: "it is of another Box, or of none".to_owned(),
            }),
            sound => Ok(sound),
        }
    }

    pub(super) async fn create(&self, path: &Path, bytes: &Bytes) -> Result<Put> {
        if !self.creates_only {
            return self.create_without_help(path, bytes).await;
        }
        let payload = PutPayload::from_bytes(bytes.clone());
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(path, payload, options).await {
            Ok(_) => Ok(Put::Done),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => self.compare(path, bytes).await,
            Err(error) => Err(error.into()),
        }
    }

    /// For stores that know no condition. Two writers at the same instant could both win; there is
    /// one writer to a run.
    async fn create_without_help(&self, path: &Path, bytes: &Bytes) -> Result<Put> {
        match self.compare(path, bytes).await {
            Err(Error::NotFound { .. }) => {}
            known => return known,
        }
        let payload = PutPayload::from_bytes(bytes.clone());
        self.store.put(path, payload).await?;
        Ok(Put::Done)
    }

    /// Whether it is our own, from a try whose answer was lost.
    async fn compare(&self, path: &Path, bytes: &Bytes) -> Result<Put> {
        let there = self.get(path).await?;
        Ok(if there == *bytes {
            Put::Done
        } else {
            Put::Taken
        })
    }

    async fn get(&self, path: &Path) -> Result<Bytes> {
        Ok(self.store.get(path).await?.bytes().await?)
    }

    pub(super) async fn get_json<T: serde::de::DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<Option<T>> {
        match self.get(path).await {
            Err(Error::NotFound { .. }) => Ok(None),
            other => parse(path, &other?).map(Some),
        }
    }

    /// A whole segment.
    pub(crate) async fn segment(&self, run: &RunKey, name: SegmentName) -> Result<(Head, Entries)> {
        let path = layout::segment(&self.root, run, name);
        let bytes = self.get(&path).await?;
        let (head, entries) = segment::decode(path.as_ref(), &bytes)?;
        Ok((own(head, run, name, &path)?, entries))
    }

    /// The head of a segment.
    pub(crate) async fn head(&self, run: &RunKey, name: SegmentName) -> Result<Head> {
        let path = layout::segment(&self.root, run, name);
        own(self.head_at(&path).await?, run, name, &path)
    }

    /// The number after a segment's last entry.
    pub(crate) async fn end_of(&self, run: &RunKey, name: SegmentName) -> Result<u64> {
        match name.next {
            Some(next) => Ok(next),
            None => Ok(self.head(run, name).await?.summary.next),
        }
    }

    pub(super) async fn head_at(&self, path: &Path) -> Result<Head> {
        let mut wanted = HEAD_GUESS;
        loop {
            let bytes = self.store.get_range(path, 0..wanted).await?;
            match segment::decode_head(path.as_ref(), &bytes)? {
                Ok(head) => return Ok(head),
                Err(more) if more > wanted => wanted = more,
                Err(_) => {
                    return Err(Error::Corrupt {
                        what: path.to_string(),
                        message: "it is cut off".to_owned(),
                    });
                }
            }
        }
    }

    pub(crate) async fn read_manifest(&self, run: &RunKey) -> Result<Option<Manifest>> {
        self.manifest_at(&layout::manifest(&self.root, run)).await
    }

    pub(super) async fn manifest_at(&self, path: &Path) -> Result<Option<Manifest>> {
        let bytes = match self.get(path).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        match parse(path, &bytes)? {
            Versioned { version: VERSION } => parse(path, &bytes).map(Some),
            Versioned { version } => Err(Error::UnknownVersion {
                what: path.to_string(),
                version,
            }),
        }
    }

    /// The segments of a run.
    pub(crate) async fn names(&self, run: &RunKey) -> Result<Names> {
        let folder = layout::run_folder(&self.root, run);
        let listed = self.store.list(Some(&folder));
        let names = listed.try_filter_map(async |object| {
            Ok(object.location.filename().and_then(SegmentName::parse))
        });
        let names: Vec<_> = names.try_collect().await?;
        Ok(names.into_iter().collect())
    }

    /// Whether a segment begins at this entry or later.
    pub(crate) async fn has_segment_from(&self, run: &RunKey, entry: u64) -> Result<bool> {
        let folder = layout::run_folder(&self.root, run);
        let before = layout::before_segment(&self.root, run, entry);
        let mut listed = self.store.list_with_offset(Some(&folder), &before);
        while let Some(object) = listed.try_next().await? {
            let name = object.location.filename().and_then(SegmentName::parse);
            if name.is_some_and(|name| name.first >= entry) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The runs of a Box.
    pub(crate) async fn list_runs(&self, box_uid: &Uid) -> Result<Vec<RunKey>> {
        let folder = layout::box_folder(&self.root, box_uid);
        let mut runs = Vec::new();
        for pod in self.folders(&folder).await? {
            let Ok(pod_uid) = Uid::parse(&pod) else {
                continue;
            };
            let numbers = self.folders(&folder.clone().join(pod)).await?;
            let mut numbers: Vec<u32> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
            numbers.sort_unstable();
            runs.extend(numbers.into_iter().map(|restart| RunKey {
                box_uid: box_uid.clone(),
                pod_uid: pod_uid.clone(),
                restart,
            }));
        }
        Ok(runs)
    }

    /// The Boxes that the archive has output of.
    ///
    /// # Errors
    /// The archive does not answer.
    pub async fn boxes(&self) -> Result<Vec<Uid>> {
        let folders = self.folders(&self.root.clone().join(layout::RUNS)).await?;
        Ok(folders
            .iter()
            .filter_map(|uid| Uid::parse(uid).ok())
            .collect())
    }

    async fn folders(&self, folder: &Path) -> Result<Vec<String>> {
        let listed = self.store.list_with_delimiter(Some(folder)).await;
        let listed = match listed.map_err(Error::from) {
            Err(Error::NotFound { .. }) => return Ok(Vec::new()),
            other => other?,
        };
        let names = listed.common_prefixes.iter().filter_map(Path::filename);
        Ok(names.map(str::to_owned).collect())
    }

    pub(super) async fn delete_all(&self, paths: Vec<Path>) -> Result<()> {
        let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = self.store.delete_stream(paths);
        while let Some(result) = deleted.next().await {
            match result.map_err(Error::from) {
                Err(Error::NotFound { .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A segment that says it is of another run, or begins elsewhere, is not what was written.
fn own(head: Head, run: &RunKey, name: SegmentName, path: &Path) -> Result<Head> {
    if head.run == *run && head.summary.first == name.first && head.summary.next > name.first {
        return Ok(head);
    }
    Err(Error::Corrupt {
        what: path.to_string(),
        message: "it belongs elsewhere".to_owned(),
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Corrupt {
        what: path.to_string(),
        message: error.to_string(),
    })
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| Error::Corrupt {
        what: "a new object".to_owned(),
        message: error.to_string(),
    })?;
    Ok(text.into())
}
