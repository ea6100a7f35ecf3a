//! The pod of a Box whose command runs under a supervisor, and what is said of it.

use boxes_lifecycle::{GRACE_MARGIN, Injection, Seen, Supervisor, World, is_supervised, pod_for};
use k8s_openapi::api::core::v1::{Container, Pod};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{ABox, Decides, a_box, a_running_pod};

fn supervisor(injection: Injection) -> Supervisor {
    Supervisor {
        image: "registry.example/boxes-supervisor@sha256:0123".to_owned(),
        pull_policy: Some("IfNotPresent".to_owned()),
        injection,
    }
}

fn pod(injection: Injection, spec: Value) -> Pod {
    let spec = serde_json::from_value(spec).unwrap();
    pod_for(&a_box().view(), &spec, Some(&supervisor(injection)), false).unwrap()
}

fn by_image(spec: Value) -> Pod {
    pod(Injection::ImageVolume, spec)
}

fn by_init(spec: Value) -> Pod {
    pod(Injection::InitContainer, spec)
}

#[test]
fn by_image_volume() {
    let pod = by_image(json!({"image": "busybox", "command": ["true"]}));
    insta::assert_yaml_snapshot!(pod);
}

#[test]
fn by_init_container() {
    let pod = by_init(json!({
        "image": "busybox",
        "command": ["true"],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
    }));
    insta::assert_yaml_snapshot!(pod);
}

#[test]
fn beside_what_the_template_adds() {
    let pod = by_init(json!({
        "image": "busybox",
        "command": ["sh", "-c"],
        "args": ["exit 3"],
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "tty": true,
        "stdin": true,
        "terminationGracePeriodSeconds": 5,
        "template": {
            "metadata": {"annotations": {"note": "y"}},
            "spec": {
                "hostPID": true,
                "initContainers": [
                    {"name": "prepare", "image": "busybox"},
                    {"name": "proxy", "image": "proxy", "restartPolicy": "Always"},
                ],
                "containers": [
                    {"name": "side", "image": "proxy", "command": ["serve"]},
                    {"name": "box", "env": [{"name": "B", "value": "2"}]},
                ],
                "volumes": [{"name": "more", "emptyDir": {}}],
            },
        },
    }));
    insta::assert_yaml_snapshot!(pod);
}

fn names(containers: Option<&Vec<Container>>) -> Vec<&str> {
    let all = containers.into_iter().flatten();
    all.map(|it| it.name.as_str()).collect()
}

fn the_box(pod: &Pod) -> &Container {
    let mut all = pod.spec.as_ref().unwrap().containers.iter();
    all.find(|it| it.name == "box").unwrap()
}

/// How the supervisor gets into a pod, by its volume, its init containers and its annotation.
fn way(pod: &Pod) -> (bool, bool, Option<&str>) {
    let spec = pod.spec.as_ref().unwrap();
    let mut volumes = spec.volumes.iter().flatten();
    let volume = volumes.find(|it| it.name == "boxes-supervisor");
    let annotations = pod.metadata.annotations.as_ref().unwrap();
    (
        volume.is_some_and(|it| it.image.is_some()),
        names(spec.init_containers.as_ref()).contains(&"boxes-supervisor"),
        annotations.get("boxes.run/supervisor").map(String::as_str),
    )
}

const BY_IMAGE: (bool, bool, Option<&str>) = (true, false, Some("image-volume"));
const BY_INIT: (bool, bool, Option<&str>) = (false, true, Some("init-container"));
const NOT: (bool, bool, Option<&str>) = (false, false, None);

#[rstest]
#[case::by_image(Injection::ImageVolume, json!({"command": ["a"]}), BY_IMAGE)]
#[case::by_init(Injection::InitContainer, json!({"command": ["a"]}), BY_INIT)]
#[case::with_a_runtime_class(Injection::ImageVolume, json!({"command": ["a"], "runtimeClassName": "gvisor"}), BY_INIT)]
#[case::with_a_runtime_class_in_the_template(Injection::ImageVolume, json!({"command": ["a"], "template": {"spec": {"runtimeClassName": "kata"}}}), BY_INIT)]
#[case::without_a_command(Injection::ImageVolume, json!({}), NOT)]
#[case::with_an_empty_command(Injection::InitContainer, json!({"command": []}), NOT)]
#[case::with_args_alone(Injection::InitContainer, json!({"args": ["a"]}), NOT)]
fn the_way_in(
    #[case] injection: Injection,
    #[case] mut spec: Value,
    #[case] expected: (bool, bool, Option<&str>),
) {
    spec["image"] = "x".into();
    let made = pod(injection, spec.clone());
    assert_eq!(way(&made), expected);
    let spec = serde_json::from_value(spec).unwrap();
    assert_eq!(is_supervised(&spec), expected != NOT);
}

#[rstest]
#[case::without_a_command(json!({"image": "x", "args": ["a"], "terminationGracePeriodSeconds": 7}))]
#[case::with_an_empty_command(json!({"image": "x", "command": []}))]
fn what_has_no_command_is_left_as_it_is(#[case] spec: Value) {
    let parsed = serde_json::from_value(spec.clone()).unwrap();
    let bare = pod_for(&a_box().view(), &parsed, None, false).unwrap();
    assert_eq!(by_image(spec.clone()), bare);
    assert_eq!(by_init(spec), bare);
}

#[rstest]
#[case::absent(json!({}), 10)]
#[case::short(json!({"terminationGracePeriodSeconds": 0}), 0)]
#[case::long(json!({"terminationGracePeriodSeconds": 3600}), 3600)]
#[case::the_longest(json!({"terminationGracePeriodSeconds": i64::MAX}), i64::MAX)]
fn the_kubelet_waits_a_little_longer(#[case] mut spec: Value, #[case] grace: i64) {
    spec["image"] = "x".into();
    spec["command"] = json!(["a"]);
    let made = by_image(spec);
    let spec = made.spec.as_ref().unwrap();
    let expected = grace.saturating_add(GRACE_MARGIN);
    assert_eq!(spec.termination_grace_period_seconds, Some(expected));
    let command = the_box(&made).command.clone().unwrap();
    assert_eq!(command[2], format!("--grace={grace}"));
}

#[test]
fn the_command_and_its_arguments_stay_as_they_are() {
    let command = ["--", "--grace=1", "", "a b", "$(A)"];
    let made = by_image(json!({"image": "x", "command": command, "args": ["run"]}));
    let container = the_box(&made);
    let run = container.command.clone().unwrap();
    let (own, theirs) = run.split_at(4);
    assert_eq!(own[..2], ["/.boxes/boxes-supervisor", "run"]);
    assert_eq!(own[3], "--");
    assert_eq!(theirs, command);
    assert_eq!(container.args, Some(vec!["run".to_owned()]));
}

/// It comes before whatever the template starts, sidecars among the init containers included.
#[test]
fn it_is_there_first() {
    let inits = json!([
        {"name": "proxy", "image": "x", "restartPolicy": "Always"},
        {"name": "prepare", "image": "x"},
    ]);
    let template = json!({"spec": {"initContainers": inits}});
    let made = by_init(json!({"image": "x", "command": ["a"], "template": template}));
    let spec = made.spec.as_ref().unwrap();
    let order = names(spec.init_containers.as_ref());
    assert_eq!(order, ["boxes-supervisor", "proxy", "prepare"]);
}

#[test]
fn the_key_is_the_last_variable_and_only_the_boxs() {
    let template = json!({"spec": {"containers": [{"name": "side", "image": "x"}]}});
    let env = json!([{"name": "A", "value": "1"}]);
    let spec = json!({"image": "x", "command": ["a"], "env": env, "template": template});
    let made = by_init(spec);
    let key = boxes_lifecycle::report_key("box-1");
    let last = the_box(&made).env.as_ref().unwrap().last().unwrap();
    assert_eq!(
        (&*last.name, last.value.as_ref()),
        ("BOXES_REPORT_KEY", Some(&key))
    );
    let whole = serde_json::to_string(&made).unwrap();
    assert_eq!(whole.matches(&key).count(), 1);
}

/// A pod's hash is of what the user asks: another way in makes no other spec of it.
#[test]
fn the_specs_hash_is_the_same() {
    let spec = || json!({"image": "x", "command": ["a"]});
    let parsed = serde_json::from_value(spec()).unwrap();
    let bare = pod_for(&a_box().view(), &parsed, None, false).unwrap();
    let hash = |pod: Pod| pod.metadata.annotations.unwrap()["boxes.run/spec-hash"].clone();
    assert_eq!(hash(by_image(spec())), hash(bare.clone()));
    assert_eq!(hash(by_init(spec())), hash(bare));
}

fn offered(object: ABox, pod: impl Into<Seen>) -> World {
    World {
        supervisor: Some(supervisor(Injection::ImageVolume).into()),
        ..object.with(pod)
    }
}

#[test]
fn a_new_pod_gets_what_the_controller_has() {
    let object = a_box().asks(json!({"command": ["a"]}));
    let write = offered(object, Seen::Absent).decided().write;
    let Some(boxes_lifecycle::Write::CreatePod(pod)) = write else {
        panic!("{write:?}");
    };
    assert_eq!(way(&pod), BY_IMAGE);
}

fn with(fields: Value) -> ABox {
    a_box().asks(json!({"command": ["a"]})).asks(fields)
}

fn sharing(field: &str, value: Value) -> ABox {
    with(json!({"template": {"spec": {field: value}}}))
}

const AS_WRITTEN: &str = "the spec is run as written";
const NO_COMMAND: &str = "the spec is run as written, without the supervisor, since it has no command: how it ends is known from the kubelet's exit code alone";
const HOST: &str = "the spec is run as written; with hostPID, processes that leave the command's descendants survive it";
const SHARED: &str = "the spec is run as written; with shareProcessNamespace, processes that leave the command's descendants survive it";

#[rstest]
#[case::no_supervisor(a_box().with(Seen::Absent), AS_WRITTEN)]
#[case::no_supervisor_and_a_command(sharing("hostPID", true.into()).with(Seen::Absent), AS_WRITTEN)]
#[case::a_command(offered(with(json!({})), Seen::Absent), AS_WRITTEN)]
#[case::no_command(offered(a_box(), Seen::Absent), NO_COMMAND)]
#[case::an_empty_command(offered(with(json!({"command": []})), Seen::Absent), NO_COMMAND)]
#[case::no_command_and_host(offered(sharing("hostPID", true.into()).asks(json!({"command": null})), Seen::Absent), NO_COMMAND)]
#[case::host(offered(sharing("hostPID", true.into()), Seen::Absent), HOST)]
#[case::shared(offered(sharing("shareProcessNamespace", true.into()), Seen::Absent), SHARED)]
#[case::not_host(offered(sharing("hostPID", false.into()), Seen::Absent), AS_WRITTEN)]
#[case::host_network(offered(sharing("hostNetwork", true.into()), Seen::Absent), AS_WRITTEN)]
#[case::a_pod(offered(with(json!({})), a_running_pod().supervised()), AS_WRITTEN)]
#[case::a_pod_with_host(offered(sharing("hostPID", true.into()), a_running_pod().supervised()), HOST)]
#[case::a_pod_from_before_the_supervisor(offered(sharing("hostPID", true.into()), a_running_pod()), AS_WRITTEN)]
#[case::a_pod_from_before_the_supervisor_was_taken_away(sharing("hostPID", true.into()).with(a_running_pod().supervised()), HOST)]
#[case::a_pod_without_a_command(offered(a_box(), a_running_pod()), NO_COMMAND)]
fn how_it_is_run_is_said(#[case] world: World, #[case] expected: &str) {
    let status = world.status();
    let mut conditions = status.conditions.iter();
    let accepted = conditions.find(|it| it.type_ == "Accepted").unwrap();
    assert_eq!((&*accepted.status, &*accepted.message), ("True", expected));
}
