//! What the kubelet reports of a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, PodStatus,
};

use super::api::{Cluster, is_terminal, stamp};
use super::command::{Command, Start};
use super::kubelet::{Kubelet, Runtime, Stage};

impl Kubelet {
    /// Reports the pod, if anything about it changed.
    pub(crate) fn publish(&mut self, cluster: &mut Cluster) {
        if self.pod == self.reported {
            return;
        }
        self.reported.clone_from(&self.pod);
        let Some(runtime) = &self.pod else { return };
        let Some(pod) = &mut cluster.pod else { return };
        let old = pod.status.clone().unwrap_or_default();
        // A terminal phase is never left, and a pod that the collector failed says no more.
        let was_terminal = is_terminal(pod);
        let mut new = status(runtime, self.command, self.ahead);
        new.conditions.clone_from(&old.conditions);
        if was_terminal {
            new.phase.clone_from(&old.phase);
            new.reason.clone_from(&old.reason);
        }
        if new != old {
            pod.status = Some(new);
            cluster.touch_pod();
        }
        if runtime.verdict == Some("Evicted") && runtime.is_over() {
            cluster.pod_condition(
                "DisruptionTarget",
                "True",
                "TerminationByKubelet",
                "pressure",
            );
        }
    }
}

fn status(runtime: &Runtime, command: Command, ahead: SignedDuration) -> PodStatus {
    let (phase, reason) = phase(runtime);
    let mut containers = vec![container("box", state(runtime, command, ahead))];
    if command.sidecar {
        containers.push(container("side", side_state(runtime)));
    }
    let bare = runtime.forgot || runtime.stage == Stage::Rejected;
    PodStatus {
        phase: Some(phase.to_owned()),
        reason: reason.map(str::to_owned),
        start_time: Some(stamp(runtime.accepted + ahead)),
        container_statuses: (!bare).then_some(containers),
        init_container_statuses: (runtime.stage == Stage::InitFailed).then(failed_init),
        ..PodStatus::default()
    }
}

fn phase(runtime: &Runtime) -> (&'static str, Option<&'static str>) {
    let over = runtime.is_over();
    match (runtime.stage, runtime.verdict) {
        // A kubelet that forgot its containers writes this while they still die.
        (_, Some(reason)) if over || runtime.forgot => ("Failed", Some(reason)),
        (Stage::Waiting, _) => ("Pending", None),
        (Stage::Ended { code: 0, .. }, _) if over => ("Succeeded", None),
        _ if over => ("Failed", None),
        _ => ("Running", None),
    }
}

fn state(runtime: &Runtime, command: Command, ahead: SignedDuration) -> ContainerState {
    match runtime.stage {
        Stage::Waiting | Stage::Rejected | Stage::InitFailed => waiting(command),
        Stage::Running { since } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(stamp(since + ahead)),
            }),
            ..ContainerState::default()
        },
        Stage::Ended {
            code,
            reason,
            since,
            at,
        } => {
            let mut state = ended(code, reason, Some(since + ahead), Some(at + ahead));
            if let Some(terminated) = &mut state.terminated {
                terminated.message.clone_from(&runtime.message);
            }
            state
        }
        Stage::Unknown => ended(137, "ContainerStatusUnknown", None, None),
    }
}

fn side_state(runtime: &Runtime) -> ContainerState {
    match runtime.stage {
        Stage::Waiting => ContainerState::default(),
        _ if runtime.sidecar_runs => ContainerState {
            running: Some(ContainerStateRunning::default()),
            ..ContainerState::default()
        },
        _ => ended(143, "Error", None, None),
    }
}

fn waiting(command: Command) -> ContainerState {
    let reason = match command.start {
        Start::NoImage => "ErrImagePull",
        _ => "ContainerCreating",
    };
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: (command.start == Start::NoImage).then(|| "no such image".to_owned()),
        }),
        ..ContainerState::default()
    }
}

fn ended(
    code: i32,
    reason: &str,
    since: Option<Timestamp>,
    at: Option<Timestamp>,
) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: code,
            reason: Some(reason.to_owned()),
            started_at: since.map(stamp),
            finished_at: at.map(stamp),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

fn container(name: &str, state: ContainerState) -> ContainerStatus {
    let made = state.running.is_some() || state.terminated.is_some();
    ContainerStatus {
        name: name.to_owned(),
        container_id: made.then(|| format!("containerd://{name}")),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn failed_init() -> Vec<ContainerStatus> {
    vec![container("prepare", ended(1, "Error", None, None))]
}
