//! What a template may not say (contract §1): one row per forbidden field.

use boxes_crds::BoxSpec;
use boxes_lifecycle::accept;
use rstest::rstest;
use serde_json::{Value, json};

fn with_template(template: Value) -> BoxSpec {
    serde_json::from_value(json!({"image": "busybox", "template": template})).unwrap()
}

fn the_box(fields: &Value) -> Value {
    let mut container = json!({"name": "box"});
    for (key, value) in fields.as_object().unwrap() {
        container[key] = value.clone();
    }
    json!({"containers": [container]})
}

fn restart_all() -> Value {
    json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}])
}

#[rstest]
#[case::restart_always(json!({"restartPolicy": "Always"}), "restartPolicy")]
#[case::restart_on_failure(json!({"restartPolicy": "OnFailure"}), "restartPolicy")]
#[case::deadline(json!({"activeDeadlineSeconds": 5}), "activeDeadlineSeconds")]
#[case::grace(json!({"terminationGracePeriodSeconds": 5}), "terminationGracePeriodSeconds")]
#[case::node(json!({"nodeName": "x"}), "nodeName")]
#[case::gates(json!({"schedulingGates": [{"name": "x"}]}), "schedulingGates")]
#[case::command(the_box(&json!({"command": ["x"]})), "command")]
#[case::args(the_box(&json!({"args": ["x"]})), "args")]
#[case::message_path(the_box(&json!({"terminationMessagePath": "/x"})), "terminationMessagePath")]
#[case::message_policy(the_box(&json!({"terminationMessagePolicy": "File"})), "terminationMessagePolicy")]
#[case::container_restart(the_box(&json!({"restartPolicy": "Never"})), "restartPolicy")]
#[case::container_restart_rules(the_box(&json!({"restartPolicyRules": []})), "restartPolicyRules")]
#[case::second_entry_of_the_box(json!({"containers": [{"name": "box"}, {"name": "box", "command": ["x"]}]}), "command")]
#[case::restart_all_in_a_sidecar(json!({"containers": [{"name": "side", "restartPolicyRules": restart_all()}]}), "RestartAllContainers")]
#[case::restart_all_in_an_init(json!({"initContainers": [{"name": "init", "restartPolicyRules": restart_all()}]}), "RestartAllContainers")]
#[case::init_of_that_name(json!({"initContainers": [{"name": "box"}]}), "initContainers")]
#[case::unknown_field(json!({"nodeSelectr": {}}), "nodeSelectr")]
#[case::unknown_nested_field(json!({"containers": [{"name": "side", "imag": "x"}]}), "imag")]
#[case::patch_directive(json!({"containers": [{"name": "box", "$patch": "delete"}]}), "$patch")]
#[case::wrong_type(json!({"hostNetwork": "yes"}), "not a pod spec")]
fn a_spec_that_is_refused(#[case] spec: Value, #[case] names: &str) {
    let refused = accept(&with_template(json!({"spec": spec}))).unwrap_err();
    assert_eq!(refused.reason, "TemplateInvalid");
    assert!(refused.message.contains(names), "{}", refused.message);
}

#[rstest]
#[case::label(json!({"labels": {"boxes.run/box-uid": "x"}}))]
#[case::annotation(json!({"annotations": {"boxes.run/generation": "9"}}))]
fn our_keys_are_refused(#[case] metadata: Value) {
    let refused = accept(&with_template(json!({"metadata": metadata}))).unwrap_err();
    assert!(
        refused.message.contains("boxes.run/"),
        "{}",
        refused.message
    );
}

#[rstest]
#[case::nothing(json!({}))]
#[case::empty(json!({"spec": {}}))]
#[case::never(json!({"spec": {"restartPolicy": "Never"}}))]
#[case::sidecar(json!({"spec": {"containers": [{"name": "side", "image": "x", "command": ["y"]}]}}))]
#[case::restarting_init(json!({"spec": {"initContainers": [{"name": "side", "image": "x", "restartPolicy": "Always"}]}}))]
#[case::rules_of_a_sidecar(json!({"spec": {"containers": [{"name": "side", "restartPolicyRules": [{"action": "Restart"}]}]}}))]
#[case::ports_of_the_box(json!({"spec": {"containers": [{"name": "box", "ports": [{"containerPort": 80}]}]}}))]
#[case::other_keys(json!({"metadata": {"labels": {"example.com/boxes.run": "x"}}}))]
fn a_template_that_is_accepted(#[case] template: Value) {
    assert_eq!(accept(&with_template(template)), Ok(()));
}
