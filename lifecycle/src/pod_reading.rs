//! Reading a pod: from the whole object to the view that the rules ask.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStatus, Pod, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::metadata::{self, ours};
use crate::pod_view::{ContainerView, Phase, PodCondition, PodView, RunState};

/// What of a pod is read: the rest of its text is skipped.
#[derive(Deserialize)]
pub(crate) struct Parts {
    #[serde(deserialize_with = "metadata::read")]
    metadata: ObjectMeta,
    spec: Option<Spec>,
    status: Option<PodStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    active_deadline_seconds: Option<i64>,
    containers: Vec<Named>,
    init_containers: Option<Vec<Named>>,
}

/// A container.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    name: String,
    restart_policy: Option<String>,
    lifecycle: Option<Hooks>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hooks {
    pre_stop: Option<IgnoredAny>,
}

impl Named {
    fn has_pre_stop(&self) -> bool {
        let hooks = self.lifecycle.as_ref();
        hooks.is_some_and(|hooks| hooks.pre_stop.is_some())
    }
}

impl From<Container> for Named {
    fn from(full: Container) -> Self {
        Self {
            name: full.name,
            restart_policy: full.restart_policy,
            lifecycle: full.lifecycle.map(|hooks| Hooks {
                pre_stop: hooks.pre_stop.map(|_| IgnoredAny),
            }),
        }
    }
}

impl From<PodSpec> for Spec {
    fn from(full: PodSpec) -> Self {
        let named = |all: Vec<Container>| all.into_iter().map(Named::from).collect();
        Self {
            node_name: full.node_name,
            active_deadline_seconds: full.active_deadline_seconds,
            containers: named(full.containers),
            init_containers: full.init_containers.map(named),
        }
    }
}

impl From<Pod> for PodView {
    fn from(pod: Pod) -> Self {
        Self::from(Parts {
            metadata: project(pod.metadata),
            spec: pod.spec.map(Spec::from),
            status: pod.status,
        })
    }
}

impl From<Parts> for PodView {
    fn from(pod: Parts) -> Self {
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let any_running = statuses(&status).any(is_running);
        let others_alive = spec.containers.iter().any(|container| {
            container.name != boxes_crds::CONTAINER && !ended(&status, &container.name)
        });
        let has_pre_stop = spec
            .containers
            .iter()
            .any(|container| container.name == boxes_crds::CONTAINER && container.has_pre_stop());
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
            metadata: pod.metadata,
            node: spec.node_name.filter(|node| !node.is_empty()),
            deadline_seconds: spec.active_deadline_seconds,
            phase: phase(status.phase.as_deref()),
            any_running,
            others_alive,
            has_pre_stop,
            init_failure,
            container,
            conditions: conditions.map(condition).collect(),
            start_time: status.start_time.map(|time| time.0),
            observed_generation: status.observed_generation,
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
        generation: full.generation,
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

/// Whether the runtime ever made a container, as far as the kubelet knows. One that it lost has no
/// id any more, but counts as restarted.
fn was_made(container: &ContainerStatus) -> bool {
    let has_id = container
        .container_id
        .as_ref()
        .is_some_and(|id| !id.is_empty());
    let before = container
        .last_state
        .as_ref()
        .is_some_and(|state| state.terminated.is_some());
    has_id || before || container.restart_count > 0
}

fn command_container(status: &PodStatus) -> Option<ContainerView> {
    let all = status.container_statuses.iter().flatten();
    let found = all
        .into_iter()
        .find(|container| container.name == boxes_crds::CONTAINER)?;
    let state = run_state(found.state.clone().unwrap_or_default());
    Some(ContainerView {
        was_made: was_made(found),
        state: match &state {
            RunState::Waiting { reason, .. } if reason.as_deref() == Some(INITIALIZING) => {
                waiting_init(status).unwrap_or(state)
            }
            RunState::Waiting { .. } | RunState::Running { .. } | RunState::Terminated { .. } => {
                state
            }
        },
    })
}

/// What all containers of a pod wait for while one before them has not ended.
const INITIALIZING: &str = "PodInitializing";

/// What that one waits for, such as its image.
fn waiting_init(status: &PodStatus) -> Option<RunState> {
    let mut inits = status.init_container_statuses.iter().flatten();
    inits.find_map(|init| {
        let waiting = init.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.clone().filter(|it| it != INITIALIZING)?;
        Some(RunState::Waiting {
            reason: Some(reason),
            message: waiting.message.clone(),
        })
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
