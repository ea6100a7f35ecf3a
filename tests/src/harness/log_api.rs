//! The log API of the cluster under test, to be looked at and disturbed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::controller::{NAMESPACE, is_ready};
use super::output::OUTPUT_READER;
use super::watch::{PATIENCE, gone, until};
use super::world::World;

const DEPLOYMENT: &str = "boxes-log-api";
const READER: &str = "boxes-output-reader";
const LABELS: &str = "app.kubernetes.io/name=boxes,app.kubernetes.io/component=log-api";
const REGISTRATION: &str = "v1alpha1.output.boxes.run";
const GROUP: &str = "output.boxes.run/v1alpha1";
/// Nothing tells when the API server will pass a request on: it is tried.
const AGAIN: Duration = Duration::from_millis(200);

/// The log API.
#[derive(Clone)]
pub struct LogApi {
    client: Client,
}

impl LogApi {
    /// That of the cluster under test.
    #[must_use]
    pub fn of(world: &World) -> Self {
        Self {
            client: world.client(),
        }
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn registrations(&self) -> Api<APIService> {
        Api::all(self.client.clone())
    }

    /// Its pods, as they are now.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let list = pods.list(&ListParams::default().labels(LABELS)).await;
        Ok(list.context("cannot list the log API's pods")?.items)
    }

    /// Kills every replica at once, without a time to end in.
    ///
    /// # Errors
    /// When there is none, or one stays.
    pub async fn kill(&self) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let all = self.pods().await?;
        ensure!(!all.is_empty(), "there is no log API to kill");
        for pod in &all {
            let at_once = DeleteParams::default().grace_period(0);
            pods.delete(&pod.name_any(), &at_once).await?;
        }
        for pod in &all {
            gone(&pods, &pod.name_any(), pod.metadata.uid.as_deref()).await?;
        }
        Ok(())
    }

    /// Sets how many replicas there are to be.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn scale(&self, replicas: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let params = PatchParams::default();
        let all = self.deployments();
        let scaled = all.patch_scale(DEPLOYMENT, &params, &patch).await;
        scaled.map(drop).context("cannot scale the log API")
    }

    /// Sets how many pods there are to be that read the archive for it, and waits until so many are ready,
    /// and no more are left.
    ///
    /// # Errors
    /// When the API server refuses it, or they do not come or go.
    pub async fn scale_readers(&self, replicas: usize) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let params = PatchParams::default();
        let all = self.deployments();
        let scaled = all.patch_scale(READER, &params, &patch).await;
        scaled.context("cannot scale the archive's reader")?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let scaled = async {
            let params = ListParams::default().labels(OUTPUT_READER);
            loop {
                let all = pods.list(&params).await?.items;
                if all.len() == replicas && all.iter().all(is_ready) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        let done = tokio::time::timeout(PATIENCE, scaled).await;
        done.context("the archive's readers are not as many as asked for")?
    }

    /// Waits until the API server passes requests on to it, and it answers: what the API server says
    /// about it may be of before it was disturbed.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn is_ready(&self) -> Result<()> {
        self.is("True").await?;
        let answers = async {
            while self.client.list_api_group_resources(GROUP).await.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
        };
        let answered = tokio::time::timeout(PATIENCE, answers).await;
        answered.context("the log API does not answer")
    }

    /// Waits until the API server knows that it is not there.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn is_unavailable(&self) -> Result<()> {
        self.is("False").await
    }

    async fn is(&self, available: &str) -> Result<()> {
        let what = format!("the APIService to say Available={available}");
        let all = self.registrations();
        until(&all, REGISTRATION, &what, PATIENCE, |seen| {
            let conditions = seen?.status.as_ref()?.conditions.as_ref()?;
            let mut known = conditions.iter();
            known
                .find(|it| it.type_ == "Available" && it.status == available)
                .map(drop)
        })
        .await
    }

    /// How it is registered.
    ///
    /// # Errors
    /// When it is not.
    pub async fn registration(&self) -> Result<APIService> {
        let found = self.registrations().get(REGISTRATION).await;
        found.context("the log API is not registered")
    }

    /// Registers it as it was.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn register(&self, as_it_was: APIService) -> Result<()> {
        let metadata = ObjectMeta {
            name: as_it_was.metadata.name,
            labels: as_it_was.metadata.labels,
            annotations: as_it_was.metadata.annotations,
            ..ObjectMeta::default()
        };
        let object = APIService {
            metadata,
            spec: as_it_was.spec,
            status: None,
        };
        let all = self.registrations();
        let made = all.create(&PostParams::default(), &object).await;
        made.map(drop).context("cannot register the log API")
    }
}
