//! A Box as the API server hands it out. Reading it never fails for what its record holds: one
//! object that this build cannot understand must not hide the others.

use boxes_crds::{BOX_FINALIZER, BoxObject, BoxSpec};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::metadata::{self, ours};
use crate::record::{Record, Unreadable};

/// A Box, with its record read or found unreadable.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxView {
    /// The object's metadata, without `managedFields`, labels, and annotations that are not ours.
    pub metadata: ObjectMeta,
    /// What is asked and what is recorded.
    pub content: Result<(BoxSpec, Record), Unreadable>,
    /// UID of the pod that the record names; read apart, since it is wanted of an unreadable one.
    pub recorded_pod_uid: Option<String>,
    /// Whether its status has nothing but what the schema puts there: no build ever wrote one.
    pub unrecorded: bool,
}

impl BoxView {
    /// Reads a Box from its JSON parts.
    #[must_use]
    pub fn read(mut metadata: ObjectMeta, spec: Value, status: Option<Value>) -> Self {
        metadata.managed_fields = None;
        metadata.annotations = metadata.annotations.map(ours);
        let text = |value| to_raw_value(&value).unwrap_or_default();
        Self::of_text(metadata, &text(spec), status.map(text).as_deref())
    }

    fn of_text(mut metadata: ObjectMeta, spec: &RawValue, status: Option<&RawValue>) -> Self {
        metadata.labels = None;
        let content = content(spec, status);
        Self {
            recorded_pod_uid: pod_uid(content.as_ref().ok(), status),
            unrecorded: is_unrecorded(status),
            metadata,
            content,
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The resource version, for guarded writes.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }

    /// When its deletion was asked for; a custom resource has no grace period.
    #[must_use]
    pub fn deletion_asked_at(&self) -> Option<Timestamp> {
        self.metadata.deletion_timestamp.as_ref().map(|time| time.0)
    }

    /// Whether its deletion was asked for.
    #[must_use]
    pub const fn deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether our finalizer is on it.
    #[must_use]
    pub fn holds_record(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        finalizers.any(|name| name == BOX_FINALIZER)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    /// Whether a person confirmed that the pod of this UID is stopped.
    #[must_use]
    pub fn confirms_stopped(&self, pod_uid: &str) -> bool {
        !pod_uid.is_empty()
            && self.annotation(boxes_crds::CONFIRM_STOPPED_ANNOTATION) == Some(pod_uid)
    }
}

fn content(spec: &RawValue, status: Option<&RawValue>) -> Result<(BoxSpec, Record), Unreadable> {
    let spec = BoxSpec::deserialize(spec)
        .map_err(|error| Unreadable(format!("spec cannot be parsed: {error}")))?;
    Ok((spec, Record::read(status)?))
}

fn is_unrecorded(status: Option<&RawValue>) -> bool {
    let Some(status) = status else {
        return true;
    };
    match Value::deserialize(status) {
        Ok(Value::Null) => true,
        Ok(Value::Object(fields)) => fields.keys().all(|field| field == "observedGeneration"),
        Ok(_) | Err(_) => false,
    }
}

fn pod_uid(content: Option<&(BoxSpec, Record)>, status: Option<&RawValue>) -> Option<String> {
    if let Some((_, record)) = content {
        return Some(record.status.run.as_ref()?.pod.uid.clone());
    }
    let status = Value::deserialize(status?).ok()?;
    status.pointer("/run/pod/uid")?.as_str().map(str::to_owned)
}

impl<'de> Deserialize<'de> for BoxView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts {
            #[serde(deserialize_with = "metadata::read")]
            metadata: ObjectMeta,
            spec: Option<Box<RawValue>>,
            status: Option<Box<RawValue>>,
        }
        let parts = Parts::deserialize(deserializer)?;
        let spec = parts.spec.as_deref().unwrap_or(RawValue::NULL);
        Ok(Self::of_text(parts.metadata, spec, parts.status.as_deref()))
    }
}

impl kube::Resource for BoxView {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxObject::kind(dt)
    }
    fn group(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxObject::group(dt)
    }
    fn version(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxObject::version(dt)
    }
    fn plural(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxObject::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
