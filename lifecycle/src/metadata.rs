//! Reading the metadata of an object: what the rules ask. The rest, `managedFields` above all, is
//! most of the text of a small object.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// The fields that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl From<Read> for ObjectMeta {
    fn from(read: Read) -> Self {
        Self {
            name: read.name,
            namespace: read.namespace,
            uid: read.uid,
            generation: read.generation,
            resource_version: read.resource_version,
            creation_timestamp: read.creation_timestamp,
            deletion_timestamp: read.deletion_timestamp,
            deletion_grace_period_seconds: read.deletion_grace_period_seconds,
            finalizers: read.finalizers,
            owner_references: read.owner_references,
            labels: read.labels.map(ours),
            annotations: read.annotations.map(ours),
            ..Self::default()
        }
    }
}

/// Keeps what is under our domain.
pub(crate) fn ours(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.retain(|key, _| key.starts_with(boxes_crds::DOMAIN));
    all
}

/// Reads metadata.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    Read::deserialize(from).map(ObjectMeta::from)
}
