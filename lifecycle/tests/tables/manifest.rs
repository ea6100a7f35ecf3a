//! The pod that a Box gives.

use boxes_lifecycle::pod_for;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::fixtures::a_box;

fn pod(spec: Value) -> Pod {
    let object = a_box().view();
    pod_for(&object, &serde_json::from_value(spec).unwrap(), None, false).unwrap()
}

#[test]
fn of_a_minimal_box() {
    let pod = pod(json!({"image": "busybox"}));
    insta::assert_yaml_snapshot!(pod);
}

#[test]
fn of_a_full_box() {
    let pod = pod(json!({
        "image": "busybox:1.37",
        "command": ["sh", "-c"],
        "args": ["exit 3"],
        "env": [{"name": "A", "value": "1"}],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "workingDir": "/scratch",
        "resources": {"limits": {"memory": "64Mi"}},
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"readOnlyRootFilesystem": true},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host"}]}},
        "runtimeClassName": "gvisor",
        "priorityClassName": "high",
        "podSecurityContext": {"runAsUser": 1000},
        "tty": true,
        "stdin": true,
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 5,
        "stopped": false,
        "startDeadlineSeconds": 30,
        "ttlSecondsAfterFinished": 600,
        "template": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}},
            "spec": {
                "hostNetwork": true,
                "volumes": [{"name": "more", "emptyDir": {}}],
                "initContainers": [{"name": "prepare", "image": "busybox"}],
                "containers": [
                    {"name": "side", "image": "proxy"},
                    {"name": "box", "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 80}]},
                ],
            },
        },
    }));
    insta::assert_yaml_snapshot!(pod);
}

#[test]
fn the_specs_hash_ignores_what_may_change() {
    let hash = |spec: Value| {
        let annotations = pod(spec).metadata.annotations.unwrap();
        annotations["boxes.run/spec-hash"].clone()
    };
    let plain = hash(json!({"image": "x"}));
    let changed = json!({"image": "x", "stopped": false, "activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 9});
    assert_eq!(plain, hash(changed));
    assert_ne!(plain, hash(json!({"image": "y"})));
}

#[test]
fn a_long_name_is_whole_in_an_annotation() {
    let mut object = a_box();
    object.metadata.name = Some("n".repeat(200));
    let spec = serde_json::from_value(json!({"image": "x"})).unwrap();
    let metadata = pod_for(&object.view(), &spec, None, false)
        .unwrap()
        .metadata;
    assert_eq!(metadata.name.unwrap().len(), 63);
    assert_eq!(
        metadata.annotations.unwrap()["boxes.run/box"],
        "n".repeat(200)
    );
}
