//! What the rules see of a pod: a small projection of the object, so that a cache of it is small.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::pod_reading::Parts;

/// A pod, reduced to what the rules ask.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(from = "Parts")]
pub struct PodView {
    /// Name, namespace, UID, generation, resource version, times, finalizers, owners, and our own labels and
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
    /// The generation of the pod that the kubelet's status answers.
    pub observed_generation: Option<i64>,
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
    /// Whether the command's container has a hook that runs before it gets its TERM.
    pub has_pre_stop: bool,
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
    pub was_made: bool,
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

    /// Whether a finalizer of ours is on it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_by().any(is_ours)
    }

    /// Whether the finalizer is on it that waits for its output.
    #[must_use]
    pub fn holds_output(&self) -> bool {
        self.held_by()
            .any(|name| name == boxes_crds::OUTPUT_FINALIZER)
    }

    /// Finalizers of others.
    pub fn foreign_finalizers(&self) -> impl Iterator<Item = &str> {
        self.held_by().filter(|name| !is_ours(name))
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

    /// Whether the command runs under a supervisor of ours.
    #[must_use]
    pub fn supervised(&self) -> bool {
        self.annotation(boxes_crds::SUPERVISOR_ANNOTATION).is_some()
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

    /// Whether the command has ended, by the kubelet's word.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let container = self.container.as_ref();
        container.is_some_and(|container| matches!(container.state, RunState::Terminated { .. }))
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

fn is_ours(finalizer: &str) -> bool {
    boxes_crds::POD_FINALIZERS.contains(&finalizer)
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
