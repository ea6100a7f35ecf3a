//! Names in a pod that are the supervisor's own: a spec that takes one is not accepted.

use boxes_crds::BoxSpec;
use boxes_lifecycle::{Seen, accept};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{Decides, a_box};

fn spec(fields: Value) -> BoxSpec {
    let mut all = json!({"image": "busybox"});
    let fields = fields.as_object().cloned().unwrap();
    all.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(all).unwrap()
}

fn template(pod: Value) -> Value {
    json!({"template": {"spec": pod}})
}

fn mounted(path: &str) -> Value {
    json!({"volumeMounts": [{"name": "x", "mountPath": path}]})
}

fn a_container(name: &str, fields: Value) -> Value {
    let mut all = json!({"name": name, "image": "x"});
    let fields = fields.as_object().cloned().unwrap();
    all.as_object_mut().unwrap().extend(fields);
    json!([all])
}

fn taken_volume() -> Value {
    json!([{"name": "boxes-supervisor", "emptyDir": {}}])
}

fn taken_mount() -> Value {
    json!({"volumeMounts": [{"name": "boxes-supervisor", "mountPath": "/x"}]})
}

fn taken_env() -> Value {
    json!({"env": [{"name": "A", "value": "1"}, {"name": "BOXES_REPORT_KEY", "value": "x"}]})
}

#[rstest]
#[case::volume(json!({"volumes": taken_volume()}), "spec.volumes: the name boxes-supervisor ")]
#[case::volume_in_the_template(template(json!({"volumes": taken_volume()})), "spec.template.spec.volumes: the name boxes-supervisor ")]
#[case::sidecar(template(json!({"containers": a_container("boxes-supervisor", json!({}))})), "spec.template.spec.containers: the name boxes-supervisor ")]
#[case::init_container(template(json!({"initContainers": a_container("boxes-supervisor", json!({}))})), "spec.template.spec.initContainers: the name boxes-supervisor ")]
#[case::mount_of_the_volume(taken_mount(), "spec.volumeMounts: the volume boxes-supervisor ")]
#[case::mount_of_the_volume_in_the_template(template(json!({"containers": a_container("box", taken_mount())})), "spec.template.spec.containers[box].volumeMounts: the volume boxes-supervisor ")]
#[case::mount_of_the_volume_in_a_sidecar(template(json!({"containers": a_container("side", taken_mount())})), "spec.template.spec.containers[side].volumeMounts: the volume boxes-supervisor ")]
#[case::mount_of_the_volume_in_an_init_container(template(json!({"initContainers": a_container("first", taken_mount())})), "spec.template.spec.initContainers[first].volumeMounts: the volume boxes-supervisor ")]
#[case::variable(taken_env(), "spec.env: the name BOXES_REPORT_KEY ")]
#[case::variable_in_the_template(template(json!({"containers": a_container("box", taken_env())})), "spec.template.spec.containers[box].env: the name BOXES_REPORT_KEY ")]
#[case::mount(mounted("/.boxes"), "spec.volumeMounts: the mountPath /.boxes ")]
#[case::mount_in_the_template(template(json!({"containers": a_container("box", mounted("/.boxes"))})), "spec.template.spec.containers[box].volumeMounts: the mountPath /.boxes ")]
#[case::mount_with_a_slash(mounted("/.boxes/"), "the mountPath /.boxes/ ")]
#[case::mount_within(mounted("/.boxes/x"), "the mountPath /.boxes/x ")]
#[case::mount_over_the_program(
    mounted("/.boxes/boxes-supervisor"),
    "the mountPath /.boxes/boxes-supervisor "
)]
#[case::mount_with_two_slashes(mounted("//.boxes/x"), "the mountPath //.boxes/x ")]
#[case::mount_with_dots(mounted("/./.boxes"), "the mountPath /./.boxes ")]
#[case::mount_without_a_slash(mounted(".boxes"), "the mountPath .boxes ")]
#[case::mount_by_a_detour(mounted("/x/../.boxes"), "the mountPath /x/../.boxes ")]
#[case::mount_by_way_of_the_root(mounted("/../.boxes"), "the mountPath /../.boxes ")]
#[case::mount_and_back(mounted("/.boxes/x/.."), "the mountPath /.boxes/x/.. ")]
fn a_name_that_is_taken(#[case] fields: Value, #[case] names: &str) {
    let refused = accept(&spec(fields)).unwrap_err();
    assert_eq!(refused.reason, "NameReserved");
    assert!(refused.message.contains(names), "{}", refused.message);
    let what_to_do = "is the supervisor's own in every box; choose another";
    assert!(refused.message.ends_with(what_to_do), "{}", refused.message);
}

#[rstest]
#[case::volume(json!({"volumes": [{"name": "boxes-supervisor-2", "emptyDir": {}}]}))]
#[case::sidecar(template(json!({"containers": a_container("supervisor", json!({}))})))]
#[case::mount_beside(mounted("/.boxes2"))]
#[case::mount_below_another_folder(mounted("/srv/.boxes"))]
#[case::mount_that_leaves_the_folder(mounted("/.boxes/../x"))]
#[case::mount_over_everything(mounted("/"))]
#[case::mount_in_a_sidecar(template(json!({"containers": a_container("side", mounted("/.boxes"))})))]
#[case::variable_of_a_sidecar(template(json!({"containers": a_container("side", taken_env())})))]
#[case::another_variable(json!({"env": [{"name": "REPORT_KEY", "value": "x"}]}))]
fn a_name_that_is_free(#[case] fields: Value) {
    assert_eq!(accept(&spec(fields)), Ok(()));
}

/// Whether or not the controller has a supervisor to give, and whether or not the box would get it.
#[test]
fn a_spec_that_takes_one_gets_no_pod_and_is_told() {
    let object = a_box().asks(json!({"volumes": taken_volume()}));
    let world = object.with(Seen::Absent);
    assert_eq!(world.write(), None);
    let status = world.status();
    let mut conditions = status.conditions.iter();
    let accepted = conditions.find(|it| it.type_ == "Accepted").unwrap();
    assert_eq!(
        (&*accepted.status, &*accepted.reason),
        ("False", "NameReserved")
    );
    assert!(
        accepted.message.contains("spec.volumes"),
        "{}",
        accepted.message
    );
}
