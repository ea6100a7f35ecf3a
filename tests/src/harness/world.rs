//! A test's own namespace, and the frame that every test runs in.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use boxes_crds::{BoxObject, CONFIRM_STOPPED_ANNOTATION};
use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::RwLock;

use super::access;
use super::audit::Audit;
use super::collectors::Collectors;
use super::controller::Controller;
use super::dump::dump;
use super::kubectl::Kubectl;
use super::live::LiveBox;
use super::log_api::LogApi;
use super::node;
use super::story::Story;
use super::watch::{PATIENCE, gone, until};
use crate::cluster::Cluster;

/// How long a test may take in all.
const LIMIT: Duration = Duration::from_mins(4);

/// Held for writing by a test that disturbs a program of Boxes, for reading by one that minds.
static PROGRAMS: RwLock<()> = RwLock::const_new(());

/// What a test works with: a namespace of its own in the shared cluster.
pub struct World {
    client: Client,
    namespace: String,
    began: Timestamp,
}

/// Runs a test that takes the controller, the collectors and the log API as they are: others may restart
/// or pause them meanwhile.
///
/// # Panics
/// When the test fails; the message tells what happened in its namespace.
pub async fn e2e(test: impl AsyncFnOnce(&World) -> Result<()>) {
    Box::pin(run(test, false)).await;
}

/// Runs a test in which these programs must not be away, if only for seconds: nobody disturbs them
/// meanwhile.
///
/// # Panics
/// When the test fails; the message tells what happened in its namespace.
pub async fn e2e_steady(test: impl AsyncFnOnce(&World) -> Result<()>) {
    let _guard = PROGRAMS.read().await;
    Box::pin(run(test, false)).await;
}

/// Runs a test that disturbs one of them. Afterwards all of them work again, however the test ended, or
/// it has failed.
///
/// # Panics
/// When the test fails; the message tells what happened in its namespace.
pub async fn e2e_alone(test: impl AsyncFnOnce(&World) -> Result<()>) {
    let _guard = PROGRAMS.write().await;
    Box::pin(run(test, true)).await;
}

async fn run(test: impl AsyncFnOnce(&World) -> Result<()>, disturbs: bool) {
    let world = match World::open().await {
        Ok(world) => world,
        Err(error) => panic!("the test cannot begin: {error:#}"),
    };
    let work = Box::pin(AssertUnwindSafe(test(&world)).catch_unwind());
    let outcome = tokio::time::timeout(LIMIT, work).await;
    let failure = match outcome {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(format!("{error:#}")),
        Ok(Err(panic)) => Some(message(panic.as_ref())),
        Err(_) => Some(format!("not done within {} s", LIMIT.as_secs())),
    };
    let shown = match &failure {
        Some(failure) => format!("{failure}\n{}", dump(&world).await),
        None => String::new(),
    };
    let resumed = if disturbs {
        world.is_undisturbed().await
    } else {
        Ok(())
    };
    if failure.is_some() {
        world.confirm_stopped().await;
    }
    let closed = world.close().await;
    assert!(failure.is_none(), "{shown}");
    for end in [resumed, closed] {
        if let Err(error) = end {
            panic!("the test passed, and then: {error:#}");
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic")
        .to_owned()
}

impl World {
    async fn open() -> Result<Self> {
        let client = access::client().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let asked = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("e2e-{}-", short_name())),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = namespaces.create(&PostParams::default(), &asked).await;
        let namespace = made.context("cannot make a namespace")?.name_any();
        let world = Self {
            client,
            namespace,
            began: Timestamp::now(),
        };
        // Without it no pod can be made.
        let accounts: Api<ServiceAccount> = world.api();
        until(&accounts, "default", "a ServiceAccount", PATIENCE, |seen| {
            seen.map(drop)
        })
        .await?;
        Ok(world)
    }

    /// Deletes the Boxes and the namespace, and waits until the Boxes are gone: a finalizer that stays
    /// fails the test. The rest of the namespace is Kubernetes' own, and goes by itself.
    async fn close(self) -> Result<()> {
        let emptied = self.delete_boxes().await;
        node::remove_all(self.client(), &self.namespace).await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let deleted = namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await;
        match deleted {
            Err(kube::Error::Api(status)) if status.is_not_found() => emptied,
            other => emptied.and(other.map(drop).context("cannot delete the namespace")),
        }
    }

    /// Lets go of Boxes that a failed test left unreadable: they wait for a person's word.
    async fn confirm_stopped(&self) {
        for object in self
            .boxes()
            .list(&ListParams::default())
            .await
            .into_iter()
            .flatten()
        {
            let run = object
                .status
                .as_ref()
                .and_then(|status| status.run.as_ref());
            if let Some(uid) = run.map(|run| run.pod.uid.clone()) {
                let it = LiveBox::new(self, &object);
                // It is the clean-up of a failure: what it does not reach, the message tells.
                let _ = it.annotate(CONFIRM_STOPPED_ANNOTATION, &uid).await;
            }
        }
    }

    async fn delete_boxes(&self) -> Result<()> {
        let boxes = self.boxes();
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        boxes
            .delete_collection(&delete, &all)
            .await
            .context("cannot delete the boxes")?;
        for object in boxes.list(&all).await.context("cannot list the boxes")? {
            gone(&boxes, &object.name_any(), object.uid().as_deref()).await?;
        }
        Ok(())
    }

    /// The name of the test's namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// When the test began.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// A client for this test alone.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client of a user who may do nothing but what is bound to that name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn client_as(&self, user: &str) -> Result<Client> {
        access::client_as(user).await
    }

    /// Objects of any kind in the test's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The Boxes of the test's namespace.
    #[must_use]
    pub fn boxes(&self) -> Api<BoxObject> {
        self.api()
    }

    /// The same Boxes without a schema.
    #[must_use]
    pub fn dynamic_boxes(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<BoxObject>(&());
        Api::namespaced_with(self.client(), &self.namespace, &resource)
    }

    /// The pods of the test's namespace.
    #[must_use]
    pub fn pods(&self) -> Api<Pod> {
        self.api()
    }

    /// The controller of the cluster.
    #[must_use]
    pub fn controller(&self) -> Controller {
        Controller::new(self.client())
    }

    /// kubectl in the test's namespace.
    ///
    /// # Errors
    /// When there is no kubectl.
    pub fn kubectl(&self) -> Result<Kubectl> {
        Kubectl::new(access::kubeconfig_path()?, &self.namespace)
    }

    /// The API server's audit log, where it is at hand: on the test cluster of this machine.
    #[must_use]
    pub fn audit(&self) -> Option<Audit> {
        Audit::of_this_machine(&access::kubeconfig_path().ok()?)
    }

    /// Waits until the controller runs again and all programs of Boxes work.
    async fn is_undisturbed(&self) -> Result<()> {
        self.controller().resume().await?;
        Collectors::of(self).are_ready().await?;
        LogApi::of(self).is_ready().await
    }

    /// This machine's test cluster, if that is the cluster under test.
    #[must_use]
    pub fn own_cluster(&self) -> Option<Cluster> {
        let cluster = Cluster::from_env(PathBuf::new()).ok()?;
        let named = access::kubeconfig_path().ok()?.canonicalize().ok()?;
        (cluster.kubeconfig().canonicalize().ok()? == named).then_some(cluster)
    }

    /// Begins to write down everything that happens to the Boxes and pods of this namespace.
    ///
    /// # Errors
    /// When they cannot be watched.
    pub async fn story(&self) -> Result<Story> {
        Story::begin(self).await
    }
}

/// The end of the test's own name, short enough for a namespace.
fn short_name() -> String {
    let thread = std::thread::current();
    let name = thread
        .name()
        .and_then(|name| name.rsplit("::").next())
        .unwrap_or("test");
    let name = name.replace('_', "-").to_lowercase();
    name.chars()
        .take(40)
        .collect::<String>()
        .trim_end_matches('-')
        .to_owned()
}
