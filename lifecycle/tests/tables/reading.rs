//! Reading a pod, and whose it is.

use boxes_lifecycle::{PodView, RunState, Seen};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{APod, Decides, a_box, a_running_box, an_unbound_pod, at, told, wire};

fn pod(status: Value) -> PodView {
    let metadata = json!({
        "name": "hello", "uid": "pod-1", "creationTimestamp": wire(5),
        "labels": {"boxes.run/box-uid": "box-1", "app": "x"},
        "annotations": {"boxes.run/box": "hello", "note": "y"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other"},
            {"apiVersion": "boxes.run/v1alpha1", "kind": "Box", "name": "hello", "uid": "box-1", "controller": true},
        ],
    });
    let spec = json!({
        "nodeName": "node",
        "containers": [{"name": "box"}, {"name": "side"}],
        "initContainers": [{"name": "prepare"}, {"name": "proxy", "restartPolicy": "Always"}],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn ended(name: &str, code: i32) -> Value {
    json!({"name": name, "state": {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": wire(50)}}})
}

fn running(name: &str) -> Value {
    json!({"name": name, "state": {"running": {"startedAt": wire(20)}}})
}

#[test]
fn the_epoch_is_no_time() {
    let terminated = json!({"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": wire(30)});
    let view =
        pod(json!({"containerStatuses": [{"name": "box", "state": {"terminated": terminated}}]}));
    assert_eq!(view.started_at(), None);
    let Some(RunState::Terminated { finished, .. }) = view.container.map(|it| it.state) else {
        panic!("it is terminated");
    };
    assert_eq!(finished, Some(at(30)));
}

#[test]
fn a_sidecars_end_is_not_the_boxs() {
    let view = pod(json!({
        "phase": "Running", "startTime": wire(10),
        "containerStatuses": [ended("side", 1), running("box")],
    }));
    assert!(!view.has_ended());
    assert_eq!(told(&a_running_box().with(APod(view)).status()), "goes on");
}

#[rstest]
#[case::the_box(json!({"containerStatuses": [running("box"), ended("side", 0)]}), true)]
#[case::a_sidecar(json!({"containerStatuses": [ended("box", 0), running("side")]}), true)]
#[case::an_init_container(json!({"initContainerStatuses": [running("prepare")]}), true)]
#[case::an_ephemeral_one(json!({"ephemeralContainerStatuses": [running("debug")]}), true)]
#[case::none(json!({"containerStatuses": [ended("box", 0), ended("side", 0)]}), false)]
fn whatever_runs_counts(#[case] status: Value, #[case] expected: bool) {
    assert_eq!(pod(status).any_running, expected);
}

#[rstest]
#[case::init(json!({"initContainerStatuses": [ended("prepare", 2)]}), Some("prepare"))]
#[case::init_that_succeeded(json!({"initContainerStatuses": [ended("prepare", 0)]}), None)]
#[case::sidecar_that_was_stopped(json!({"initContainerStatuses": [ended("proxy", 143)]}), None)]
fn an_init_container_that_failed(#[case] status: Value, #[case] named: Option<&str>) {
    let failure = pod(status).init_failure;
    assert_eq!(failure.is_some(), named.is_some());
    assert!(
        failure
            .unwrap_or_default()
            .contains(named.unwrap_or_default())
    );
}

#[test]
fn an_init_container_that_failed_fails_the_start() {
    let view = pod(json!({
        "phase": "Failed", "startTime": wire(10),
        "initContainerStatuses": [ended("prepare", 2)],
        "containerStatuses": [{"name": "box", "state": {"waiting": {"reason": "PodInitializing"}}}],
    }));
    let status = a_box().with(APod(view)).status();
    assert_eq!(told(&status), "Stopped StartFailed - - Derived");
    assert!(
        status
            .message
            .unwrap()
            .contains("init container prepare failed")
    );
}

#[test]
fn only_our_keys_are_kept() {
    let view = pod(json!({}));
    assert_eq!(view.metadata.labels.unwrap().len(), 1);
    assert_eq!(view.metadata.annotations.unwrap().len(), 1);
}

#[test]
fn the_owner_is_the_controller() {
    assert_eq!(pod(json!({})).owner_uid(), Some("box-1"));
}

#[test]
fn a_pull_that_fails_again_and_again_is_said_once() {
    let waiting = |reason: &str, message: &str| {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let view = pod(
            json!({"startTime": wire(10), "containerStatuses": [{"name": "box", "state": state}]}),
        );
        a_box().with(APod(view)).status().message
    };
    let failed = waiting("ErrImagePull", "no such host");
    let backs_off = waiting(
        "ImagePullBackOff",
        "Back-off pulling image \"x\": ErrImagePull: no such host",
    );
    assert_eq!(failed, backs_off);
    assert_eq!(failed.as_deref(), Some("ErrImagePull: no such host"));
}

#[test]
fn what_every_start_waits_for_is_not_said() {
    let state = json!({"waiting": {"reason": "ContainerCreating"}});
    let view = pod(json!({"containerStatuses": [{"name": "box", "state": state}]}));
    let status = a_box().with(APod(view)).status();
    assert_eq!(
        (status.state.as_deref(), status.message),
        (Some("Materializing"), None)
    );
}

/// What `judge` makes of a pod: its first letters.
fn judged(object: &crate::fixtures::ABox, found: Option<PodView>, live: bool) -> &'static str {
    match Seen::judge(&object.view(), found, live) {
        Seen::NotSeen => "not seen",
        Seen::Absent => "absent",
        Seen::Ours(_) => "ours",
        Seen::Foreign => "foreign",
    }
}

fn with_uid(uid: &str) -> PodView {
    let mut pod = an_unbound_pod().0;
    pod.metadata.uid = Some(uid.to_owned());
    pod
}

fn without_label(mut pod: PodView) -> PodView {
    pod.metadata.labels = None;
    pod
}

fn without_owner(mut pod: PodView) -> PodView {
    pod.metadata.owner_references = None;
    pod
}

#[rstest]
#[case::none(None, false, "not seen", "not seen")]
#[case::none_live(None, true, "absent", "absent")]
#[case::ours(Some(with_uid("pod-1")), false, "ours", "ours")]
#[case::another_of_ours(Some(with_uid("pod-2")), false, "ours", "not seen")]
#[case::another_of_ours_live(Some(with_uid("pod-2")), true, "ours", "absent")]
#[case::ours_without_its_label(Some(without_label(with_uid("pod-1"))), true, "foreign", "ours")]
#[case::ours_without_its_owner(Some(without_owner(with_uid("pod-1"))), true, "foreign", "ours")]
#[case::a_strangers(Some(without_owner(with_uid("pod-9"))), false, "foreign", "not seen")]
#[case::a_strangers_live(Some(without_owner(with_uid("pod-9"))), true, "foreign", "absent")]
fn whose_a_pod_is(
    #[case] found: Option<PodView>,
    #[case] live: bool,
    #[case] unrecorded: &str,
    #[case] recorded: &str,
) {
    assert_eq!(judged(&a_box(), found.clone(), live), unrecorded);
    assert_eq!(judged(&a_running_box(), found, live), recorded);
}

#[rstest]
#[case::its_image("ErrImagePull", "ErrImagePull")]
#[case::nothing_yet("PodInitializing", "PodInitializing")]
fn what_an_init_container_waits_for_the_box_waits_for(#[case] has: &str, #[case] shown: &str) {
    let waiting = |name: &str, reason: &str| json!({"name": name, "state": {"waiting": {"reason": reason, "message": "said"}}});
    let view = pod(json!({
        "initContainerStatuses": [waiting("prepare", has)],
        "containerStatuses": [waiting("box", "PodInitializing")],
    }));
    let Some(RunState::Waiting { reason, .. }) = view.container.map(|it| it.state) else {
        panic!("it waits");
    };
    assert_eq!(reason.as_deref(), Some(shown));
}

#[rstest]
#[case::on_the_box(json!([{"name": "box", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]), true)]
#[case::on_another(json!([{"name": "box"}, {"name": "side", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]), false)]
#[case::another_hook(json!([{"name": "box", "lifecycle": {"postStart": {"exec": {}}}}]), false)]
fn a_hook_before_the_stop_is_seen(#[case] containers: Value, #[case] seen: bool) {
    let pod = json!({"metadata": {"name": "hello"}, "spec": {"containers": containers}});
    let view: PodView = serde_json::from_value(pod).unwrap();
    assert_eq!(view.has_pre_stop, seen);
}
