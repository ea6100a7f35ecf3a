//! What is done to a pod behind the controller's back.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::live::LiveBox;

impl LiveBox {
    /// Deletes its pod without any grace, as `kubectl delete pod --force --grace-period=0` does.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn force_delete_pod(&self, pod: &Pod) -> Result<()> {
        let params = DeleteParams::default().grace_period(0);
        let deleted = self.pods.delete(&pod.name_any(), &params).await;
        deleted
            .with_context(|| format!("cannot force the deletion of pod {}", pod.name_any()))
            .map(drop)
    }

    /// Sets the finalizers of its pod, whoever set those that it has.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn set_pod_finalizers(&self, pod: &Pod, finalizers: &[&str]) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let patched = self
            .pods
            .patch(&pod.name_any(), &PatchParams::default(), &patch)
            .await;
        patched
            .with_context(|| format!("cannot set the finalizers of pod {}", pod.name_any()))
            .map(drop)
    }

    /// Binds its pod to a node, whatever the scheduler thinks of it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn bind_pod(&self, pod: &Pod, node: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name_any()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let params = PostParams::default();
        let bound: kube::Result<Value> = self
            .pods
            .create_subresource("binding", &pod.name_any(), &params, &binding)
            .await;
        bound
            .with_context(|| format!("cannot bind pod {} to {node}", pod.name_any()))
            .map(drop)
    }
}
