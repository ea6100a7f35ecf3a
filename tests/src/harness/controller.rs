//! The controller of the cluster under test, as a Deployment that can be looked at and disturbed.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::metrics::Metrics;
use super::watch::{first, gone};

/// The namespace that Boxes is installed in.
pub const NAMESPACE: &str = "boxes-system";

/// The controller's Deployment.
pub const DEPLOYMENT: &str = "boxes-controller";

/// Who the controller is to the API server.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:boxes-system:boxes-controller";

const LABELS: &str = "app.kubernetes.io/name=boxes,app.kubernetes.io/component=controller";
const PORT: u16 = 8080;

/// The controller.
#[derive(Clone)]
pub struct Controller {
    client: Client,
}

/// What the chart tells the controller about new pods, for one that runs in its place.
///
/// # Errors
/// When the Deployment cannot be read.
pub async fn chart_arguments(client: &Client) -> Result<Vec<String>> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let deployment = deployments.get(DEPLOYMENT).await;
    let deployment = deployment.context("no controller is installed")?;
    let pod = deployment.spec.template.spec.unwrap_or_default();
    let all = pod.containers.into_iter().filter_map(|it| it.args);
    let ours = all
        .flatten()
        .filter(|it| it.starts_with("--supervisor-") || it == "--output");
    Ok(ours.collect())
}

impl Controller {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Its pods, as they are now.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn list_pods(&self) -> Result<Vec<Pod>> {
        let list = self
            .pods()
            .list(&ListParams::default().labels(LABELS))
            .await;
        Ok(list.context("cannot list the controller's pods")?.items)
    }

    /// Its one pod that works.
    ///
    /// # Errors
    /// When none becomes ready.
    pub async fn ready_pod(&self) -> Result<Pod> {
        first(&self.pods(), LABELS, "a ready controller", |pod| {
            is_ready(pod).then(|| pod.clone())
        })
        .await
    }

    /// What it logged since then: the lines of all of its pods.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub async fn log_since(&self, since: Timestamp) -> Result<String> {
        let params = LogParams {
            since_time: Some(whole_second(since)),
            ..LogParams::default()
        };
        let mut text = String::new();
        for pod in self.list_pods().await? {
            let log = self.pods().logs(&pod.name_any(), &params).await;
            text.push_str(&log.with_context(|| format!("the log of {}", pod.name_any()))?);
        }
        Ok(text)
    }

    /// What it counts, asked of its pod through the API server.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<Metrics> {
        self.ask("metrics").await.map(Metrics::new)
    }

    /// The answer of its pod to a GET of this path.
    ///
    /// # Errors
    /// When it does not answer with success.
    pub async fn ask(&self, path: &str) -> Result<String> {
        let pod = self.ready_pod().await?.name_any();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:{PORT}/proxy/{path}");
        let request = http::Request::get(&path).body(Vec::new())?;
        let answer = self.client.request_text(request).await;
        answer.with_context(|| format!("GET {path}"))
    }

    /// Kills it, by deleting its pod, and waits until another one is ready.
    ///
    /// # Errors
    /// When none becomes ready.
    pub async fn restart(&self) -> Result<()> {
        let old = self.list_pods().await?;
        ensure!(!old.is_empty(), "there is no controller to restart");
        for pod in &old {
            self.pods()
                .delete(&pod.name_any(), &DeleteParams::default())
                .await?;
        }
        self.wait_for_the_end_of(&old).await?;
        self.ready_pod().await.map(drop)
    }

    /// Scales it to nothing and waits until it is gone.
    ///
    /// # Errors
    /// When it does not go.
    pub async fn pause(&self) -> Result<()> {
        self.scale(0).await?;
        let old = self.list_pods().await?;
        self.wait_for_the_end_of(&old).await
    }

    /// Scales it to one and waits until that works. Does nothing to one that runs.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn resume(&self) -> Result<()> {
        self.scale(1).await?;
        self.ready_pod().await.map(drop)
    }

    async fn wait_for_the_end_of(&self, old: &[Pod]) -> Result<()> {
        for pod in old {
            gone(&self.pods(), &pod.name_any(), pod.meta_uid()).await?;
        }
        Ok(())
    }

    async fn scale(&self, replicas: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.deployments()
            .patch_scale(DEPLOYMENT, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("cannot scale the controller to {replicas}"))
            .map(drop)
    }
}

/// The second that a time is in: that is what a log is asked for, and rounded it would miss some lines.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The UID as the API gives it.
trait MetaUid {
    fn meta_uid(&self) -> Option<&str>;
}

impl MetaUid for Pod {
    fn meta_uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }
}

/// Ready, and not on its way out.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|it| it.type_ == "Ready" && it.status == "True");
    pod.metadata.deletion_timestamp.is_none() && ready.next().is_some()
}

/// Whether a pod of a Deployment's newest generation is available.
pub(super) fn is_available(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    let current = status.and_then(|it| it.observed_generation) >= deployment.metadata.generation;
    current
        && status
            .and_then(|it| it.available_replicas)
            .is_some_and(|count| count > 0)
}
