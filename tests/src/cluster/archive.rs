//! OCI image archives: a tar file of blobs with an index of names.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::hex;
use super::reference::Reference;

/// The content type of an image's manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The annotation by which containerd names an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// The annotation by which other tools do.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// How one blob names another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: usize,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    /// What is not needed here, such as the platform.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// Named images and the blobs that they consist of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Archive {
    pub(crate) images: Vec<(Reference, Descriptor)>,
    /// By digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

/// A blob's digest, as descriptors write it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

impl Archive {
    /// Adds a blob and describes it.
    pub(crate) fn add_blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Descriptor {
        let descriptor = Descriptor {
            media_type: media_type.to_owned(),
            digest: digest(&bytes),
            size: bytes.len(),
            annotations: BTreeMap::new(),
            rest: BTreeMap::new(),
        };
        self.blobs.insert(descriptor.digest.clone(), bytes);
        descriptor
    }

    /// Reads an archive, checking each blob against its name.
    pub(crate) fn read(source: impl Read) -> Result<Self> {
        let mut archive = Self::default();
        let mut index: Option<Index> = None;
        for entry in tar::Archive::new(source)
            .entries()
            .context("this is no tar archive")?
        {
            let mut entry = entry.context("this is no tar archive, or it is cut off")?;
            let path = entry
                .path()
                .context("an entry has no name")?
                .display()
                .to_string();
            let mut bytes = Vec::new();
            entry
                .read_to_end(&mut bytes)
                .with_context(|| format!("cannot read {path}"))?;
            match path.trim_start_matches("./") {
                "index.json" => {
                    index = Some(serde_json::from_slice(&bytes).context("index.json")?);
                }
                path => archive.read_blob(path, bytes)?,
            }
        }
        let index = index.context(
            "it holds no index.json: it is no OCI archive (podman and buildah write one with \
             `push NAME oci-archive:FILE:NAME`)",
        )?;
        archive.images = index
            .manifests
            .into_iter()
            .map(named)
            .collect::<Result<_>>()?;
        Ok(archive)
    }

    fn read_blob(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let Some(hash) = path
            .strip_prefix("blobs/sha256/")
            .filter(|hash| !hash.is_empty())
        else {
            return Ok(());
        };
        let found = digest(&bytes);
        if found != format!("sha256:{hash}") {
            bail!("the blob {path} is damaged: its content has the digest {found}");
        }
        self.blobs.insert(found, bytes);
        Ok(())
    }

    /// The archive as a file's content, in which containerd and other tools find the full names.
    pub(crate) fn write(&self) -> Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        let manifests: Vec<Descriptor> = self
            .images
            .iter()
            .map(|(name, descriptor)| {
                let names = [CONTAINERD_NAME, REF_NAME].map(|key| (key.into(), name.to_string()));
                Descriptor {
                    annotations: names.into(),
                    ..descriptor.clone()
                }
            })
            .collect();
        let index = json!({"schemaVersion": 2, "manifests": manifests});
        append(&mut tar, "index.json", &serde_json::to_vec(&index)?)?;
        for (digest, bytes) in &self.blobs {
            append(
                &mut tar,
                &format!("blobs/{}", digest.replace(':', "/")),
                bytes,
            )?;
        }
        tar.into_inner().context("cannot finish the archive")
    }
}

/// The full name of an image in an index.
fn named(mut descriptor: Descriptor) -> Result<(Reference, Descriptor)> {
    let name = [CONTAINERD_NAME, REF_NAME]
        .iter()
        .find_map(|key| descriptor.annotations.get(*key));
    let Some(name) = name.filter(|name| name.contains(['/', ':'])) else {
        bail!(
            "the image {} has no name in index.json, or only a tag ({name:?}): expected \
             HOST/REPOSITORY:TAG in the annotation {REF_NAME}",
            descriptor.digest
        );
    };
    let reference = Reference::parse(name)?;
    descriptor.annotations.clear();
    Ok((reference, descriptor))
}

fn append(tar: &mut tar::Builder<Vec<u8>>, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, path, bytes)
        .with_context(|| format!("cannot add {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Archive {
        let mut archive = Archive::default();
        archive.add_blob("application/vnd.oci.image.layer.v1.tar", b"layer".to_vec());
        let manifest = archive.add_blob(MANIFEST, b"{}".to_vec());
        archive
            .images
            .push((Reference::parse("busybox").unwrap(), manifest));
        archive
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = example().write().unwrap();
        assert_eq!(Archive::read(written.as_slice()).unwrap(), example());
    }

    #[test]
    fn a_damaged_blob_is_named() {
        let mut archive = example();
        let first = archive.blobs.values_mut().next().unwrap();
        first.push(b'!');
        let error = Archive::read(archive.write().unwrap().as_slice())
            .unwrap_err()
            .to_string();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn what_is_no_archive_is_refused_with_advice() {
        let mut tar = tar::Builder::new(Vec::new());
        append(&mut tar, "manifest.json", b"[]").unwrap();
        let error = Archive::read(tar.into_inner().unwrap().as_slice())
            .unwrap_err()
            .to_string();
        assert!(error.contains("oci-archive"), "{error}");
    }
}
