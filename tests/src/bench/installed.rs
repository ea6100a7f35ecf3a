//! The controller that is installed in the cluster: it must not work while another is measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::harness::{DEPLOYMENT, NAMESPACE};

const LABELS: &str = "app.kubernetes.io/name=boxes,app.kubernetes.io/component=controller";
const PATIENCE: Duration = Duration::from_mins(1);

/// Scales it to nothing and waits until it is gone. How many there are to be afterwards.
pub(super) async fn pause(client: &Client) -> Result<Option<i32>> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let Some(deployment) = deployments.get_opt(DEPLOYMENT).await? else {
        return Ok(None);
    };
    let wanted = deployment.spec.replicas.unwrap_or(1);
    scale(client, 0).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    while !pods
        .list(&ListParams::default().labels(LABELS))
        .await?
        .items
        .is_empty()
    {
        if began.elapsed() > PATIENCE {
            bail!("the installed controller does not end");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // A run that was killed has left it at nothing.
    Ok(Some(wanted.max(1)))
}

/// Scales it.
pub(super) async fn scale(client: &Client, replicas: i32) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    deployments
        .patch_scale(DEPLOYMENT, &PatchParams::default(), &patch)
        .await
        .map(drop)
        .with_context(|| format!("cannot scale the installed controller to {replicas}"))
}
