//! Which nodes mount images, and the way into boxes that all of them support.

use boxes_lifecycle::{Injection, NodeFacts, best_injection};
use kube::Resource;
use rstest::rstest;
use serde_json::{Value, json};

fn read(node: Value) -> NodeFacts {
    serde_json::from_value(node).unwrap()
}

fn a_node(kubelet: &str, runtime: &str) -> NodeFacts {
    on("linux", kubelet, runtime)
}

fn on(system: &str, kubelet: &str, runtime: &str) -> NodeFacts {
    read(json!({
        "metadata": {"name": "node", "uid": "node-1", "resourceVersion": "7", "labels": {"a": "b"}},
        "status": {"nodeInfo": {
            "kubeletVersion": kubelet, "containerRuntimeVersion": runtime, "operatingSystem": system,
            "architecture": "amd64", "bootID": "", "containerRuntime": "", "kernelVersion": "",
            "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
        }},
    }))
}

fn new() -> NodeFacts {
    a_node("v1.37.2", "containerd://2.2.0")
}

fn old() -> NodeFacts {
    a_node("v1.34.9", "containerd://1.7.27")
}

fn cordoned(mut node: NodeFacts) -> NodeFacts {
    node.schedulable = false;
    node
}

#[rstest]
#[case::first("v1.35.0", "containerd://2.1.0", true)]
#[case::older_kubelet("v1.34.9", "containerd://2.1.0", false)]
#[case::much_older_kubelet("v1.9.11", "containerd://2.1.0", false)]
#[case::a_distribution("v1.37.2+k3s1", "containerd://2.2.1-k3s1", true)]
#[case::an_older_distribution("v1.34.2+k3s1", "containerd://2.1.4-k3s1", false)]
#[case::a_cloud("v1.35.1-gke.1000", "containerd://2.1.3", true)]
#[case::a_later_major("v2.0.0", "containerd://3.0.0", true)]
#[case::a_candidate("v1.35.0-rc.1", "containerd://2.1.0-rc.1", true)]
#[case::an_older_candidate("v1.35.0", "containerd://2.0.0-rc.1", false)]
#[case::older_containerd("v1.37.0", "containerd://1.7.27", false)]
#[case::containerd_2_0("v1.37.0", "containerd://2.0.5", false)]
#[case::containerd_2_10("v1.37.0", "containerd://2.10.0", true)]
#[case::containerd_with_a_v("v1.37.0", "containerd://v2.1.4", true)]
#[case::kubelet_without_a_v("1.37.0", "containerd://2.1.4", true)]
#[case::crio("v1.35.0", "cri-o://1.33.0", true)]
#[case::older_crio("v1.35.0", "cri-o://1.32.9", false)]
#[case::crio_is_not_containerd("v1.35.0", "cri-o://1.31.0", false)]
#[case::docker("v1.35.0", "docker://29.0.1", false)]
#[case::another_runtime("v1.35.0", "containerd-shim://2.1.0", false)]
#[case::capitals("v1.35.0", "Containerd://2.1.0", false)]
#[case::no_scheme("v1.35.0", "containerd 2.1.0", false)]
#[case::no_version("v1.35.0", "containerd://", false)]
#[case::unknown_version("v1.35.0", "containerd://Unknown", false)]
#[case::only_a_major("v1.35.0", "containerd://2", false)]
#[case::only_major_and_minor("v1.35", "containerd://2.1", true)]
#[case::a_minor_with_a_plus("v1.35+", "containerd://2.1+unknown", true)]
#[case::simulated("kwok-v0.8.0", "containerd://2.1.0", false)]
#[case::simulated_as_kwok_does("kwok-v0.8.0", "", false)]
#[case::empty("", "", false)]
#[case::too_great("v1.99999999999", "containerd://2.1.0", false)]
#[case::negative("v1.-35.0", "containerd://2.1.0", false)]
#[case::two_vs("vv1.35.0", "containerd://2.1.0", false)]
fn images_are_mounted(#[case] kubelet: &str, #[case] runtime: &str, #[case] expected: bool) {
    assert_eq!(a_node(kubelet, runtime).mounts_images, expected);
}

#[rstest]
#[case::plain(new(), true)]
#[case::cordoned(read(json!({"metadata": {}, "spec": {"unschedulable": true}})), false)]
#[case::not_cordoned(read(json!({"metadata": {}, "spec": {"unschedulable": false}})), true)]
#[case::tainted(read(json!({"metadata": {}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})), true)]
#[case::windows(on("windows", "v1.37.2", "containerd://2.2.0"), false)]
#[case::not_reported(read(json!({"metadata": {}})), true)]
fn boxes_are_scheduled(#[case] node: NodeFacts, #[case] expected: bool) {
    assert_eq!(node.schedulable, expected);
}

#[test]
fn a_node_without_a_status_mounts_nothing() {
    assert!(!read(json!({"metadata": {}})).mounts_images);
    assert!(!read(json!({"metadata": {}, "status": {}})).mounts_images);
}

#[test]
fn of_the_metadata_little_is_kept() {
    let node = new();
    assert_eq!(node.meta().name.as_deref(), Some("node"));
    assert_eq!(node.meta().uid.as_deref(), Some("node-1"));
    assert_eq!(node.meta().resource_version.as_deref(), Some("7"));
    assert_eq!(node.meta().labels, None);
}

#[rstest]
#[case::no_nodes(vec![], Injection::InitContainer)]
#[case::one(vec![new()], Injection::ImageVolume)]
#[case::all(vec![new(), new(), new()], Injection::ImageVolume)]
#[case::one_is_old(vec![new(), old(), new()], Injection::InitContainer)]
#[case::the_first_is_old(vec![old(), new()], Injection::InitContainer)]
#[case::the_last_is_old(vec![new(), old()], Injection::InitContainer)]
#[case::the_old_one_is_cordoned(vec![new(), cordoned(old())], Injection::ImageVolume)]
#[case::the_new_one_is_cordoned(vec![cordoned(new()), old()], Injection::InitContainer)]
#[case::all_are_cordoned(vec![cordoned(new()), cordoned(new())], Injection::InitContainer)]
#[case::beside_windows(vec![on("windows", "v1.30.0", "containerd://1.7.0"), new()], Injection::ImageVolume)]
#[case::only_windows(vec![on("windows", "v1.37.2", "containerd://2.2.0")], Injection::InitContainer)]
#[case::beside_a_simulated_one(vec![new(), a_node("kwok-v0.8.0", "")], Injection::InitContainer)]
#[case::beside_one_that_has_not_reported(vec![new(), read(json!({"metadata": {}}))], Injection::InitContainer)]
fn the_best_way_in(#[case] nodes: Vec<NodeFacts>, #[case] expected: Injection) {
    assert_eq!(best_injection(nodes.iter()), expected);
}
