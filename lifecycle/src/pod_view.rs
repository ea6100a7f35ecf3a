//! What the rules see of a pod: a small projection of the object, so that a cache of it is small.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

/// A pod, reduced to what the rules ask.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(from = "Pod")]
pub struct PodView {
    /// Name, namespace, UID, resource version, times, finalizers, owners, and our own labels and
    /// annotations.
    pub metadata: ObjectMeta,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// `spec.activeDeadlineSeconds`.
    pub deadline_seconds: Option<i64>,
    /// `status.phase`.
    pub phase: Phase,
    /// `status.reason`.
    pub reason: Option<String>,
    /// `status.message`.
    pub message: Option<String>,
    /// When the kubelet acknowledged the pod.
    pub start_time: Option<Timestamp>,
    /// `status.conditions`.
    pub conditions: Vec<PodCondition>,
    /// The container that runs the command; absent while the kubelet has not reported it.
    pub container: Option<ContainerView>,
    /// Whether a container of any kind, the command's included, is reported as running.
    pub any_running: bool,
    /// Whether a container beside the command's has not ended. One that waits for its image counts:
    /// it holds the pod up as one that runs does. Sidecars among the init containers do not: the
    /// kubelet ends them with the others.
    pub others_alive: bool,
    /// Why an init container failed, when one did.
    pub init_failure: Option<String>,
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Pending, or not reported yet.
    #[default]
    Pending,
    /// Running.
    Running,
    /// Every container ended with 0.
    Succeeded,
    /// Every container ended, one of them badly, or the pod was ended as a whole.
    Failed,
    /// Unknown, or a word that this build does not know.
    Unknown,
}

impl Phase {
    /// Whether the pod is at its end by the API's word.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running | Self::Unknown => false,
        }
    }
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodCondition {
    /// Its type.
    pub type_: String,
    /// Whether its status is True.
    pub is_true: bool,
    /// Its reason.
    pub reason: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// When its status last changed.
    pub since: Option<Timestamp>,
}

/// The command's container, by the kubelet's word.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerView {
    /// Whether the runtime ever made it.
    pub has_id: bool,
    /// What it is doing.
    pub state: RunState,
}

/// What a container is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// Not started.
    Waiting {
        /// Such as `ErrImagePull`.
        reason: Option<String>,
        /// What the runtime said.
        message: Option<String>,
    },
    /// Started and not ended.
    Running {
        /// When it started.
        since: Option<Timestamp>,
    },
    /// Ended.
    Terminated {
        /// The code that the kubelet gives; it says nothing for `ContainerStatusUnknown`.
        code: i32,
        /// Such as `Completed`, `Error`, `OOMKilled`, `StartError`, `ContainerStatusUnknown`.
        reason: Option<String>,
        /// The termination message.
        message: Option<String>,
        /// When it started.
        started: Option<Timestamp>,
        /// When it ended.
        finished: Option<Timestamp>,
    },
}

impl PodView {
    /// The UID; empty only in hand-made views.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether a deletion was asked for.
    #[must_use]
    pub const fn deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// When the deletion was asked for: the API stores when its grace ends.
    #[must_use]
    pub fn deletion_asked_at(&self) -> Option<Timestamp> {
        let end = self.metadata.deletion_timestamp.as_ref()?.0;
        let grace = self.metadata.deletion_grace_period_seconds.unwrap_or(0);
        end.checked_sub(jiff::SignedDuration::from_secs(grace)).ok()
    }

    /// Whether our finalizer is on it.
    #[must_use]
    pub fn holds_evidence(&self) -> bool {
        self.held_by().any(|name| name == boxes_crds::POD_FINALIZER)
    }

    /// Finalizers of others.
    pub fn foreign_finalizers(&self) -> impl Iterator<Item = &str> {
        self.held_by()
            .filter(|name| *name != boxes_crds::POD_FINALIZER)
    }

    fn held_by(&self) -> impl Iterator<Item = &str> {
        self.metadata
            .finalizers
            .iter()
            .flatten()
            .map(String::as_str)
    }

    /// The condition of a type, when its status is True.
    #[must_use]
    pub fn true_condition(&self, type_: &str) -> Option<&PodCondition> {
        self.condition(type_).filter(|condition| condition.is_true)
    }

    /// The condition of a type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&PodCondition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// The UID of the controller that owns it.
    #[must_use]
    pub fn owner_uid(&self) -> Option<&str> {
        self.metadata
            .owner_references
            .iter()
            .flatten()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str())
    }

    /// An annotation of ours.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    /// When the command's container started, by the kubelet's word.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        match &self.container.as_ref()?.state {
            RunState::Waiting { .. } => None,
            RunState::Running { since } => *since,
            RunState::Terminated { started, .. } => *started,
        }
    }

    /// The resource version, for guarded writes.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }
}

impl kube::Resource for PodView {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind(dt: &()) -> std::borrow::Cow<'_, str> {
        Pod::kind(dt)
    }
    fn group(dt: &()) -> std::borrow::Cow<'_, str> {
        Pod::group(dt)
    }
    fn version(dt: &()) -> std::borrow::Cow<'_, str> {
        Pod::version(dt)
    }
    fn plural(dt: &()) -> std::borrow::Cow<'_, str> {
        Pod::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl From<Pod> for PodView {
    fn from(pod: Pod) -> Self {
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let any_running = statuses(&status).any(is_running);
        let others_alive = spec.containers.iter().any(|container| {
            container.name != boxes_crds::CONTAINER && !ended(&status, &container.name)
        });
        let sidecar = |name: &str| {
            let mut inits = spec.init_containers.iter().flatten();
            inits.any(|init| init.name == name && init.restart_policy.as_deref() == Some("Always"))
        };
        let init_failure = status
            .init_container_statuses
            .iter()
            .flatten()
            .filter(|init| !sidecar(&init.name))
            .find_map(failure);
        let container = command_container(&status);
        let conditions = status.conditions.into_iter().flatten();
        Self {
            metadata: project(pod.metadata),
            node: spec.node_name.filter(|node| !node.is_empty()),
            deadline_seconds: spec.active_deadline_seconds,
            phase: phase(status.phase.as_deref()),
            any_running,
            others_alive,
            init_failure,
            container,
            conditions: conditions.map(condition).collect(),
            start_time: status.start_time.map(|time| time.0),
            reason: status.reason,
            message: status.message,
        }
    }
}

/// Keeps of the metadata what the rules ask.
fn project(full: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: full.name,
        namespace: full.namespace,
        uid: full.uid,
        resource_version: full.resource_version,
        creation_timestamp: full.creation_timestamp,
        deletion_timestamp: full.deletion_timestamp,
        deletion_grace_period_seconds: full.deletion_grace_period_seconds,
        finalizers: full.finalizers,
        owner_references: full.owner_references,
        labels: full.labels.map(ours),
        annotations: full.annotations.map(ours),
        ..ObjectMeta::default()
    }
}

fn ours(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.retain(|key, _| key.starts_with(boxes_crds::DOMAIN));
    all
}

fn phase(word: Option<&str>) -> Phase {
    match word {
        None | Some("" | "Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) => Phase::Unknown,
    }
}

fn condition(full: k8s_openapi::api::core::v1::PodCondition) -> PodCondition {
    PodCondition {
        type_: full.type_,
        is_true: full.status == "True",
        reason: full.reason,
        message: full.message,
        since: full.last_transition_time.map(|time| time.0),
    }
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    [
        &status.container_statuses,
        &status.init_container_statuses,
        &status.ephemeral_container_statuses,
    ]
    .into_iter()
    .flatten()
    .flatten()
}

fn ended(status: &PodStatus, name: &str) -> bool {
    let mut all = status.container_statuses.iter().flatten();
    let found = all.find(|container| container.name == name);
    let state = found.and_then(|container| container.state.as_ref());
    state.is_some_and(|state| state.terminated.is_some())
}

fn is_running(container: &ContainerStatus) -> bool {
    container
        .state
        .as_ref()
        .is_some_and(|state| state.running.is_some())
}

/// Says how an init container failed. Not for a sidecar among them (one that restarts): it is
/// stopped with the pod, which is no failure.
fn failure(container: &ContainerStatus) -> Option<String> {
    let ended = container.state.as_ref()?.terminated.as_ref()?;
    (ended.exit_code != 0).then(|| {
        let reason = ended.reason.as_deref().unwrap_or("Error");
        let name = &container.name;
        format!(
            "init container {name} failed: {reason}, exit code {}",
            ended.exit_code
        )
    })
}

fn command_container(status: &PodStatus) -> Option<ContainerView> {
    let all = status.container_statuses.iter().flatten();
    let found = all
        .into_iter()
        .find(|container| container.name == boxes_crds::CONTAINER)?;
    Some(ContainerView {
        has_id: found.container_id.as_ref().is_some_and(|id| !id.is_empty()),
        state: run_state(found.state.clone().unwrap_or_default()),
    })
}

fn run_state(state: ContainerState) -> RunState {
    if let Some(ended) = state.terminated {
        return RunState::Terminated {
            code: ended.exit_code,
            reason: ended.reason,
            message: ended.message,
            started: ended.started_at.as_ref().and_then(meaningful),
            finished: ended.finished_at.as_ref().and_then(meaningful),
        };
    }
    if let Some(running) = state.running {
        return RunState::Running {
            since: running.started_at.as_ref().and_then(meaningful),
        };
    }
    let waiting = state.waiting.unwrap_or_default();
    RunState::Waiting {
        reason: waiting.reason,
        message: waiting.message,
    }
}

/// A container that could not start is reported as started at the Unix epoch.
fn meaningful(time: &Time) -> Option<Timestamp> {
    (time.0 > Timestamp::UNIX_EPOCH).then_some(time.0)
}
