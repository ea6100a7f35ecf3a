//! A Box in the cluster: looking at it and waiting for it.

use anyhow::{Context, Result, bail};
use boxes_crds::{BOX_UID_LABEL, BoxObject, BoxStatus, Reason, State};
use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::LogParams;
use kube::{Api, ResourceExt};

use super::ending::ExpectedEnding;
use super::watch::{PATIENCE, first, gone, until};
use super::world::World;

/// A Box that was made, by name and UID.
#[derive(Clone)]
pub struct LiveBox {
    pub(super) boxes: Api<BoxObject>,
    pub(super) pods: Api<Pod>,
    name: String,
    uid: String,
}

impl LiveBox {
    /// The Box of this object, in the test's namespace.
    #[must_use]
    pub fn new(world: &World, object: &BoxObject) -> Self {
        Self {
            boxes: world.boxes(),
            pods: world.pods(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The Box as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn get(&self) -> Result<BoxObject> {
        self.boxes
            .get(&self.name)
            .await
            .with_context(|| format!("cannot read box {}", self.name))
    }

    /// Its status as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn status(&self) -> Result<BoxStatus> {
        Ok(self.get().await?.status.unwrap_or_default())
    }

    /// Waits until the Box is as described.
    ///
    /// # Errors
    /// When it is not in time; the message shows it as last seen.
    pub async fn wait_for(&self, what: &str, is: impl Fn(&BoxObject) -> bool) -> Result<BoxObject> {
        let found = |seen: Option<&BoxObject>| seen.filter(|object| is(object)).cloned();
        until(&self.boxes, &self.name, what, PATIENCE, found).await
    }

    /// Waits until the Box is in a state.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn is(&self, state: State) -> Result<BoxStatus> {
        let what = format!("the box to be {state}");
        let object = self
            .wait_for(&what, |object| state_of(object) == Some(state.as_str()))
            .await?;
        Ok(object.status.unwrap_or_default())
    }

    /// What its ending must be. Await it, or say more about it first.
    pub fn ends_as(&self, state: State, reason: Reason) -> ExpectedEnding<'_> {
        ExpectedEnding::new(self, state, reason)
    }

    /// Waits until a condition has a status, and returns it.
    ///
    /// # Errors
    /// When it has not in time.
    pub async fn has_condition(&self, type_: &str, status: &str) -> Result<Condition> {
        let what = format!("{type_}={status}");
        let found = |object: &BoxObject| {
            condition(object, type_)
                .filter(|known| known.status == status)
                .cloned()
        };
        let object = self
            .wait_for(&what, |object| found(object).is_some())
            .await?;
        found(&object).context("the condition that was just there")
    }

    /// Waits until the record says that no pod is left.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn is_cleaned_up(&self) -> Result<BoxStatus> {
        let up = |object: &BoxObject| {
            condition(object, "CleanedUp").is_some_and(|known| known.status == "True")
        };
        let object = self.wait_for("the box to be cleaned up", up).await?;
        Ok(object.status.unwrap_or_default())
    }

    /// Waits until the Box is gone.
    ///
    /// # Errors
    /// When it is still there in the end.
    pub async fn is_gone(&self) -> Result<()> {
        gone(&self.boxes, &self.name, Some(&self.uid)).await
    }

    /// Waits until its pod is as described. The pod is found by its label, whether or not the Box's
    /// record names it yet.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn has_a_pod(&self, what: &str, is: impl Fn(&Pod) -> bool) -> Result<Pod> {
        let labels = format!("{BOX_UID_LABEL}={}", self.uid);
        first(&self.pods, &labels, what, |pod| {
            is(pod).then(|| pod.clone())
        })
        .await
    }

    /// Waits until the kubelet says that the command ended; its pod, and how it ended.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn has_a_finished_pod(&self) -> Result<(Pod, ContainerStateTerminated)> {
        let pod = self
            .has_a_pod("the command to end", |pod| terminated(pod).is_some())
            .await?;
        let end = terminated(&pod)
            .cloned()
            .context("the end that was just there")?;
        Ok((pod, end))
    }

    /// Waits until its pod is gone.
    ///
    /// # Errors
    /// When it is still there in the end.
    pub async fn has_no_pod_left(&self, pod: &Pod) -> Result<()> {
        gone(&self.pods, &pod.name_any(), pod.metadata.uid.as_deref()).await
    }

    /// Waits until the command has written this line: it then is where the test wants it.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn says(&self, line: &str) -> Result<()> {
        let started = |pod: &Pod| box_state(pod).is_some_and(|state| state.waiting.is_none());
        let pod = self.has_a_pod("the command to start", started).await?;
        let params = LogParams {
            follow: true,
            container: Some(boxes_crds::CONTAINER.to_owned()),
            ..LogParams::default()
        };
        let mut log = self
            .pods
            .log_stream(&pod.name_any(), &params)
            .await?
            .lines();
        let search = async {
            while let Some(said) = log.try_next().await? {
                if said == line {
                    return Ok(());
                }
            }
            bail!("the command ended and did not say {line:?}")
        };
        let said = tokio::time::timeout(PATIENCE, search).await;
        said.with_context(|| format!("the command did not say {line:?}"))?
    }
}

/// The state of a Box.
fn state_of(object: &BoxObject) -> Option<&str> {
    object.status.as_ref()?.state.as_deref()
}

/// A condition of a Box.
pub(super) fn condition<'a>(object: &'a BoxObject, type_: &str) -> Option<&'a Condition> {
    object
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|known| known.type_ == type_)
}

/// The kubelet's word about the command's container.
fn box_state(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::ContainerState> {
    let all = pod.status.as_ref()?.container_statuses.as_ref()?;
    all.iter()
        .find(|status| status.name == boxes_crds::CONTAINER)?
        .state
        .as_ref()
}

/// How the command's container ended, by the kubelet's word.
pub(super) fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    box_state(pod)?.terminated.as_ref()
}
