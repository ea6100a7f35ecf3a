//! What a pod says about its output. Pure.

use boxes_crds::{BOX_NAME_ANNOTATION, BOX_UID_LABEL, CONTAINER, OUTPUT_FINALIZER};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};
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
        ended: ended(pod),
    })
}

/// The name of the Box, which becomes a part of a URL.
fn name_of_box(pod: &Pod) -> Option<String> {
    let name = pod.annotations().get(BOX_NAME_ANNOTATION)?;
    is_subdomain(name).then(|| name.clone())
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
    let Some(status) = &pod.status else {
        return Ended::No;
    };
    let container = status.container_statuses.iter().flatten();
    let state = container
        .filter(|container| container.name == CONTAINER)
        .find_map(|container| Some((container, container.state.as_ref()?)));
    match state {
        Some((
            _,
            ContainerState {
                running: Some(_), ..
            },
        )) => Ended::No,
        Some((
            container,
            ContainerState {
                terminated: Some(end),
                ..
            },
        )) => ran(container, end),
        Some(_) | None if is_over(status.phase.as_deref()) => Ended::NeverRan,
        Some(_) | None => Ended::No,
    }
}

/// A container that was made has a log, also if its program could not be started.
fn ran(container: &ContainerStatus, end: &ContainerStateTerminated) -> Ended {
    let made = |id: &Option<String>| id.as_deref().is_some_and(|id| !id.is_empty());
    if made(&container.container_id) || made(&end.container_id) {
        Ended::Ran
    } else {
        Ended::NeverRan
    }
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

    #[test]
    fn a_pod_deleted_before_its_sandbox_was_made_never_ran() {
        let status = json!({"phase": "Failed", "containerStatuses": [fill(json!({
            "name": "box",
            "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}},
        }))]});
        assert_eq!(assignment(&pod(&status)).unwrap().ended, Ended::NeverRan);
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
