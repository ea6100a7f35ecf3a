//! What a pod says about its output. Pure.

use boxes_crds::{BOX_NAME_ANNOTATION, BOX_UID_LABEL, CONTAINER, OUTPUT_FINALIZER};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;

use crate::archive::{RunKey, Uid};
use crate::collector::{Assignment, Ended};
use crate::names::is_subdomain;

/// What is to be collected of a pod; `None` if it is none of ours, or was let go.
pub(crate) fn assignment(pod: &Pod) -> Option<Assignment> {
    if !holds(pod) {
        return None;
    }
    let box_uid = Uid::parse(pod.labels().get(BOX_UID_LABEL)?).ok()?;
    let pod_uid = Uid::parse(pod.metadata.uid.as_deref()?).ok()?;
    let (namespace, name) = (pod.namespace()?, pod.metadata.name.as_deref()?);
    if !is_name(&namespace) || !is_name(name) {
        return None;
    }
    Some(Assignment {
        folder: format!("{namespace}_{name}_{pod_uid}/{CONTAINER}"),
        name: name_of_box(pod)?,
        run: RunKey::first(box_uid, pod_uid),
        namespace,
        wanted: false,
        started: status(pod).and_then(started),
        ended: ended(pod),
    })
}

/// The name of the Box, which becomes a part of a URL.
fn name_of_box(pod: &Pod) -> Option<String> {
    let name = pod.annotations().get(BOX_NAME_ANNOTATION)?;
    is_subdomain(name).then(|| name.clone())
}

/// What the kubelet says of the command's container.
fn status(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)
}

/// When it started, by the kubelet's word.
fn started(status: &ContainerStatus) -> Option<Timestamp> {
    let state = status.state.as_ref()?;
    let running = state.running.as_ref().map(|running| &running.started_at);
    let ended = state.terminated.as_ref().map(|ended| &ended.started_at);
    Some(running.or(ended)?.as_ref()?.0)
}

/// Whether our finalizer is on it.
pub(crate) fn holds(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|held| held == OUTPUT_FINALIZER)
}

/// A name as the API server lets it be: no way to lead out of a folder.
fn is_name(name: &str) -> bool {
    let good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    !name.is_empty() && !name.contains("..") && name.bytes().all(good)
}

/// Whether the container has ended, by the kubelet's word.
fn ended(pod: &Pod) -> Ended {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let container = status(pod);
    let state = container.and_then(|container| container.state.as_ref());
    let end = state.and_then(|state| state.terminated.as_ref());
    if state.is_some_and(|state| state.running.is_some()) || (end.is_none() && !is_over(phase)) {
        return Ended::No;
    }
    match (container, end) {
        // A container that was made has a log, also if its program could not be started.
        (Some(container), Some(end)) if was_made(container, end) => Ended::Ran,
        (Some(container), _) if was_there_before(container) => Ended::Unknown,
        (Some(_) | None, _) => Ended::NeverRan,
    }
}

fn was_made(container: &ContainerStatus, end: &ContainerStateTerminated) -> bool {
    is_id(container.container_id.as_deref()) || is_id(end.container_id.as_deref())
}

/// A container that ran and that the kubelet cannot find any more is said to be a new one, with an
/// end before it.
fn was_there_before(container: &ContainerStatus) -> bool {
    let last = container.last_state.as_ref();
    is_id(container.container_id.as_deref())
        || container.restart_count > 0
        || last.is_some_and(|last| last.terminated.is_some())
}

fn is_id(id: Option<&str>) -> bool {
    id.is_some_and(|id| !id.is_empty())
}

fn is_over(phase: Option<&str>) -> bool {
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "namespace": "ns", "name": "hello-1", "uid": "pod-uid",
                "labels": {"boxes.run/box-uid": "box-uid"},
                "annotations": {"boxes.run/box": "hello"},
                "finalizers": ["example.org/other", "boxes.run/output"],
            },
            "status": status,
        }))
        .unwrap()
    }

    fn of_box(state: &Value) -> Value {
        let sidecar = json!({"name": "sidecar", "state": {"running": {}}});
        let main = json!({"name": "box", "containerID": "containerd://1", "state": state});
        json!({"phase": "Running", "containerStatuses": [fill(sidecar), fill(main)]})
    }

    /// A container of a pod that failed, of which the kubelet knows little.
    fn vanished(more: &Value) -> Value {
        let end = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
        let mut container = fill(json!({"name": "box", "state": end}));
        for (key, value) in more.as_object().unwrap() {
            container[key] = value.clone();
        }
        json!({"phase": "Failed", "containerStatuses": [container]})
    }

    fn fill(mut container: Value) -> Value {
        for (key, value) in [
            ("image", json!("i")),
            ("imageID", json!("")),
            ("ready", json!(false)),
            ("restartCount", json!(0)),
        ] {
            container[key] = value;
        }
        container
    }

    #[rstest::rstest]
    #[case(json!({}), Ended::No)]
    #[case(json!({"phase": "Pending"}), Ended::No)]
    #[case(json!({"phase": "Failed", "reason": "OutOfcpu"}), Ended::NeverRan)]
    #[case(of_box(&json!({"waiting": {"reason": "ContainerCreating"}})), Ended::No)]
    #[case(of_box(&json!({"running": {}})), Ended::No)]
    #[case(vanished(&json!({"restartCount": 1})), Ended::Unknown)]
    #[case(vanished(&json!({"lastState": {"terminated": {"exitCode": 137}}})), Ended::Unknown)]
    #[case(vanished(&json!({"containerID": "containerd://1", "state": {"waiting": {}}})), Ended::Unknown)]
    #[case(vanished(&json!({"state": {"waiting": {}}})), Ended::NeverRan)]
    #[case(of_box(&json!({"terminated": {"exitCode": 0, "containerID": "containerd://1"}})), Ended::Ran)]
    fn the_end_is_the_kubelets_word(#[case] status: Value, #[case] ended: Ended) {
        let assignment = assignment(&pod(&status)).unwrap();
        assert_eq!(assignment.ended, ended);
        assert_eq!(assignment.folder, "ns_hello-1_pod-uid/box");
        assert_eq!(
            (assignment.name.as_str(), assignment.namespace.as_str()),
            ("hello", "ns")
        );
    }

    #[rstest::rstest]
    #[case(json!({"phase": "Pending"}), None)]
    #[case(vanished(&json!({})), None)]
    #[case(of_box(&json!({"running": {"startedAt": "2026-11-30T19:00:00Z"}})), Some("2026-11-30T19:00:00Z"))]
    #[case(of_box(&json!({"terminated": {"exitCode": 0, "startedAt": "2026-11-30T19:00:00Z"}})), Some("2026-11-30T19:00:00Z"))]
    fn its_start_is_the_kubelets_word(#[case] status: Value, #[case] started: Option<&str>) {
        let started = started.map(|time| time.parse().unwrap());
        assert_eq!(assignment(&pod(&status)).unwrap().started, started);
    }

    #[test]
    fn a_pod_deleted_before_its_sandbox_was_made_never_ran() {
        let never = assignment(&pod(&vanished(&json!({})))).unwrap();
        assert_eq!(never.ended, Ended::NeverRan);
    }

    #[rstest::rstest]
    #[case("/metadata/finalizers", json!([]))]
    #[case("/metadata/labels", json!({}))]
    #[case("/metadata/labels", json!({"boxes.run/box-uid": "../../other"}))]
    #[case("/metadata/uid", json!("../x"))]
    #[case("/metadata/name", json!("../x"))]
    #[case("/metadata/name", json!("a/b"))]
    #[case("/metadata/namespace", json!(".."))]
    #[case("/metadata/annotations", json!({}))]
    #[case("/metadata/annotations", json!({"boxes.run/box": ""}))]
    #[case("/metadata/annotations", json!({"boxes.run/box": "a/b"}))]
    #[case("/metadata/annotations", json!({"boxes.run/box": "?watch=true"}))]
    fn other_and_forged_pods_are_not_collected(#[case] at: &str, #[case] value: Value) {
        let mut forged = serde_json::to_value(pod(&json!({}))).unwrap();
        *forged.pointer_mut(at).unwrap() = value;
        assert_eq!(assignment(&serde_json::from_value(forged).unwrap()), None);
    }
}
