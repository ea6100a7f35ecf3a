//! What people do to a Box and its pod.

use anyhow::{Context, Result, ensure};
use boxes_crds::BoxObject;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{AttachParams, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::live::LiveBox;

impl LiveBox {
    /// Changes the spec by a merge patch, which the API server may well refuse.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn try_change(&self, spec: Value) -> kube::Result<BoxObject> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.boxes
            .patch(self.name(), &PatchParams::default(), &patch)
            .await
    }

    /// Changes the spec by a merge patch.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn change(&self, spec: Value) -> Result<BoxObject> {
        let changed = self.try_change(spec.clone()).await;
        changed.with_context(|| format!("cannot change box {} by {spec}", self.name()))
    }

    /// Sets an annotation of the Box.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let patched = self
            .boxes
            .patch(self.name(), &PatchParams::default(), &patch)
            .await;
        patched
            .with_context(|| format!("cannot annotate box {}", self.name()))
            .map(drop)
    }

    /// Asks for a stop.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn stop(&self) -> Result<()> {
        self.change(json!({"stopped": true})).await.map(drop)
    }

    /// Asks for a stop and waits until the intent is recorded: from then on it is a cause, and what
    /// comes later in the same second is not the earlier one.
    ///
    /// # Errors
    /// When the API server refuses it, or it is not recorded in time.
    pub async fn stop_and_see(&self) -> Result<BoxObject> {
        self.stop().await?;
        let intended = |object: &BoxObject| {
            let status = object.status.as_ref();
            status.is_some_and(|status| status.stop.is_some())
        };
        self.wait_for("the stop to be recorded", intended).await
    }

    /// Ends the wait of a running command that waits ([`WAIT`](super::WAIT)).
    ///
    /// # Errors
    /// When the file it waits for cannot be made in the container.
    pub async fn tell(&self) -> Result<()> {
        let pod = self.has_a_pod("its pod", |_| true).await?.name_any();
        let params = AttachParams::default().container(boxes_crds::CONTAINER);
        let making = self.pods.exec(&pod, ["touch", "/told"], &params).await;
        let mut making = making.with_context(|| format!("cannot exec in pod {pod}"))?;
        let status = making.take_status().context("an exec without a status")?;
        let status = status.await.context("an exec without an end")?;
        ensure!(status.status.as_deref() == Some("Success"), "{status:?}");
        Ok(())
    }

    /// Deletes the Box, as `kubectl delete --wait=false` does.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete(&self) -> Result<()> {
        let deleted = self
            .boxes
            .delete(self.name(), &DeleteParams::default())
            .await;
        deleted
            .with_context(|| format!("cannot delete box {}", self.name()))
            .map(drop)
    }

    /// Deletes its pod, as a person would.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete_pod(&self, pod: &Pod) -> Result<()> {
        let deleted = self
            .pods
            .delete(&pod.name_any(), &DeleteParams::default())
            .await;
        deleted
            .with_context(|| format!("cannot delete pod {}", pod.name_any()))
            .map(drop)
    }

    /// Evicts its pod through the eviction API, as a drain does.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn evict_pod(&self, pod: &Pod) -> Result<()> {
        let evicted = self
            .pods
            .evict(&pod.name_any(), &EvictParams::default())
            .await;
        evicted
            .with_context(|| format!("cannot evict pod {}", pod.name_any()))
            .map(drop)
    }
}
