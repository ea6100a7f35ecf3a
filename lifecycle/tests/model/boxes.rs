//! The API server's rules for the Box.

use boxes_crds::{BOX_FINALIZER, BoxSpec, BoxStatus};
use boxes_lifecycle::BoxView;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::api::{Answer, Cluster, Done, stamp};

/// A Box in etcd.
#[derive(Clone, Debug)]
pub(crate) struct StoredBox {
    pub metadata: ObjectMeta,
    pub spec: BoxSpec,
    pub status: Option<Value>,
}

impl StoredBox {
    pub(crate) fn new(now: Timestamp, spec: BoxSpec) -> Self {
        let metadata = ObjectMeta {
            name: Some("hello".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some("box-1".to_owned()),
            resource_version: Some("1".to_owned()),
            generation: Some(1),
            creation_timestamp: Some(stamp(now)),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            spec,
            status: None,
        }
    }

    pub(crate) fn view(&self) -> BoxView {
        let spec = serde_json::to_value(&self.spec).unwrap();
        BoxView::read(self.metadata.clone(), spec, self.status.clone())
    }

    /// The stored status; empty where this build cannot read it.
    pub(crate) fn recorded(&self) -> BoxStatus {
        let status = self.status.clone().unwrap_or(Value::Null);
        serde_json::from_value(status).unwrap_or_default()
    }
}

impl Cluster {
    fn the_box(&mut self, version: &str) -> Result<&mut StoredBox, Answer> {
        let object = self.object.as_mut().ok_or(Answer::NotFound)?;
        if object.metadata.resource_version.as_deref() == Some(version) {
            Ok(object)
        } else {
            Err(Answer::Conflict)
        }
    }

    pub(crate) fn hold_box(&mut self, version: &str) -> Done {
        let object = self.the_box(version)?;
        let finalizers = object.metadata.finalizers.get_or_insert_default();
        finalizers.push(BOX_FINALIZER.to_owned());
        self.touch_box();
        Ok(())
    }

    pub(crate) fn release_box(&mut self, version: &str) -> Done {
        let object = self.the_box(version)?;
        let finalizers = object.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|name| name != BOX_FINALIZER);
        self.touch_box();
        self.collect_box();
        Ok(())
    }

    pub(crate) fn write_status(&mut self, version: &str, status: &BoxStatus) -> Done {
        let written = serde_json::to_value(status).unwrap();
        let object = self.the_box(version)?;
        object.status = Some(written);
        self.touch_box();
        Ok(())
    }

    pub(crate) fn delete_box(&mut self) {
        let now = stamp(self.now);
        let Some(object) = &mut self.object else {
            return;
        };
        object.metadata.deletion_timestamp.get_or_insert(now);
        self.touch_box();
        self.collect_box();
    }

    fn collect_box(&mut self) {
        let goes = self.object.as_ref().is_some_and(|object| {
            let held = object
                .metadata
                .finalizers
                .as_ref()
                .is_some_and(|all| !all.is_empty());
            object.metadata.deletion_timestamp.is_some() && !held
        });
        if goes {
            self.object = None;
        }
    }

    /// A person changes the spec; once a run is recorded, only what the CRD's rules let through.
    pub(crate) fn edit_box(&mut self, change: impl FnOnce(&mut BoxSpec)) {
        let Some(object) = &mut self.object else {
            return;
        };
        let mut edited = object.spec.clone();
        change(&mut edited);
        let ran = object.recorded().run.is_some();
        let frozen = |spec: &BoxSpec| BoxSpec {
            stopped: None,
            ttl_seconds_after_finished: None,
            active_deadline_seconds: None,
            ..spec.clone()
        };
        let deadline = |spec: &BoxSpec| spec.active_deadline_seconds.unwrap_or(i64::MAX);
        let lowered = deadline(&edited) <= deadline(&object.spec);
        if edited == object.spec || (ran && (frozen(&edited) != frozen(&object.spec) || !lowered)) {
            return;
        }
        object.spec = edited;
        *object.metadata.generation.get_or_insert(0) += 1;
        self.touch_box();
    }

    pub(crate) fn annotate_box(&mut self, key: &str, value: &str) {
        let Some(object) = &mut self.object else {
            return;
        };
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        self.touch_box();
    }

    fn touch_box(&mut self) {
        let version = self.next_version();
        if let Some(object) = &mut self.object {
            object.metadata.resource_version = Some(version);
        }
    }
}
