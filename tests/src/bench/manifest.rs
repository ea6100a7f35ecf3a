//! What the benchmark makes.

use serde_json::{Value, json};

use crate::harness::as_new_as_ours;

/// On everything cluster-wide that the benchmark makes, so that the next run finds it.
pub(super) const LABEL: &str = "bench.boxes.run/made";
/// The finalizer by which the benchmark keeps a pod from going.
pub(super) const FOREIGN_FINALIZER: &str = "bench.boxes.run/held";

/// Which kind of node a Box is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One that kwok plays.
    Kwok,
    /// One that nobody plays: its kubelet never answers.
    Deaf,
    /// The real one.
    Real,
}

impl Place {
    /// The node label `type`, for those that are not real.
    pub(super) fn node_type(self) -> Option<&'static str> {
        match self {
            Self::Kwok => Some("kwok"),
            Self::Deaf => Some("kwok-deaf"),
            Self::Real => None,
        }
    }
}

/// A Box of a short task.
pub(super) fn a_box(name: &str, place: Place) -> Value {
    json!({
        "apiVersion": "boxes.run/v1alpha1",
        "kind": "Box",
        "metadata": {"name": name},
        "spec": box_spec(place),
    })
}

fn box_spec(place: Place) -> Value {
    match place.node_type() {
        None => json!({"image": "busybox", "command": ["true"]}),
        Some(kind) => json!({
            "image": "busybox",
            "command": ["sleep", "1"],
            "nodeSelector": {"type": kind},
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}],
        }),
    }
}

/// A bare pod that is what a Box on the real node makes, without what is the controller's.
pub(super) fn a_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "containers": [{"name": "box", "image": "busybox", "command": ["true"]}],
        },
    })
}

/// A node that is ready and has room for as many pods as a real one.
pub(super) fn a_node(name: &str, place: Place) -> Value {
    let room = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {LABEL: "true", "type": place.node_type(), "kubernetes.io/hostname": name},
        },
        "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": room,
            "capacity": room,
            "nodeInfo": as_new_as_ours(),
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "Played",
                "message": "no kubelet is behind this node",
                "lastHeartbeatTime": jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
                "lastTransitionTime": jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
            }],
        },
    })
}

/// A quota that lets no pod in.
pub(super) fn no_pods() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    })
}
