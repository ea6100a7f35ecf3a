//! What the rules see of a node: whether it takes pods, and whether those may mount images.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Node, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::supervisor::Injection;

/// The first kubelet on which image volumes need no feature gate.
const KUBELET: [u32; 2] = [1, 35];

/// The first runtimes that mount images as volumes.
const RUNTIMES: [(&str, [u32; 2]); 2] = [("containerd", [2, 1]), ("cri-o", [1, 33])];

/// A node, reduced to what the rules ask.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(from = "Node")]
pub struct NodeFacts {
    /// Name, UID and version.
    pub metadata: ObjectMeta,
    /// Whether the scheduler may put boxes there.
    pub schedulable: bool,
    /// Whether pods there may have volumes that are images.
    pub mounts_images: bool,
}

impl From<Node> for NodeFacts {
    fn from(node: Node) -> Self {
        let cordoned = node.spec.and_then(|spec| spec.unschedulable) == Some(true);
        let info = node.status.and_then(|status| status.node_info);
        let windows = info
            .as_ref()
            .is_some_and(|info| info.operating_system == "windows");
        Self {
            metadata: ObjectMeta {
                name: node.metadata.name,
                uid: node.metadata.uid,
                resource_version: node.metadata.resource_version,
                ..ObjectMeta::default()
            },
            schedulable: !cordoned && !windows,
            mounts_images: info.is_some_and(|info| mounts_images(&info)),
        }
    }
}

fn mounts_images(info: &NodeSystemInfo) -> bool {
    let kubelet = version(&info.kubelet_version);
    let runtime = info.container_runtime_version.split_once("://");
    let able = runtime.is_some_and(|(name, has)| {
        let known = RUNTIMES.iter().find(|(known, _)| *known == name);
        known.is_some_and(|(_, first)| version(has).is_some_and(|has| has >= *first))
    });
    able && kubelet.is_some_and(|has| has >= KUBELET)
}

/// Major and minor. What others build often has a `v` before it, and more behind.
fn version(text: &str) -> Option<[u32; 2]> {
    let number = text.strip_prefix('v').unwrap_or(text);
    let mut parts = number.split(['.', '-', '+']);
    let mut number = || parts.next()?.parse().ok();
    Some([number()?, number()?])
}

/// The way into boxes that every node supports that may run one. Where no node is known, the one that
/// works everywhere.
#[must_use]
pub fn best_injection<'a>(nodes: impl Iterator<Item = &'a NodeFacts>) -> Injection {
    let mut known = nodes.filter(|node| node.schedulable).peekable();
    let some = known.peek().is_some();
    if some && known.all(|node| node.mounts_images) {
        Injection::ImageVolume
    } else {
        Injection::InitContainer
    }
}

impl kube::Resource for NodeFacts {
    type DynamicType = ();
    type Scope = kube::core::ClusterResourceScope;

    fn kind(dt: &()) -> Cow<'_, str> {
        Node::kind(dt)
    }
    fn group(dt: &()) -> Cow<'_, str> {
        Node::group(dt)
    }
    fn version(dt: &()) -> Cow<'_, str> {
        Node::version(dt)
    }
    fn plural(dt: &()) -> Cow<'_, str> {
        Node::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
