//! A node that is only an object: the test plays its kubelet.
//!
//! Guarantees: no pod but those that name it is placed on it; it is removed with the test's world.

use std::time::Duration;

use anyhow::{Context, Result};
use boxes_crds::{OUTPUT_ANNOTATION, OUTPUT_FINALIZER};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::builder::BoxBuilder;
use super::live::LiveBox;
use super::watch::{PATIENCE, gone, until};
use super::world::World;

/// Marks played nodes; its value is the namespace of the test.
const LABEL: &str = "example.org/played-by";

/// A kubelet says that it lives more often than the cluster's patience with it lasts.
const BEAT: Duration = Duration::from_secs(10);

/// A node whose kubelet is played.
#[derive(Clone)]
pub struct PlayedNode {
    nodes: Api<Node>,
    pods: Api<Pod>,
    name: String,
}

impl World {
    /// A node of the test's own, Ready.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn played_node(&self) -> Result<PlayedNode> {
        let node = PlayedNode {
            nodes: Api::all(self.client()),
            pods: self.pods(),
            name: self.namespace().to_owned(),
        };
        node.register().await?;
        Ok(node)
    }
}

/// Removes what a test registered.
pub(super) async fn remove_all(client: Client, namespace: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let of_this_test = ListParams::default().labels(&format!("{LABEL}={namespace}"));
    nodes
        .delete_collection(&DeleteParams::default(), &of_this_test)
        .await
        .context("cannot remove the played nodes")
        .map(drop)
}

/// `status.nodeInfo` with versions that support all that boxes can use, so that boxes on other nodes are
/// run as ever.
#[must_use]
pub fn as_new_as_ours() -> Value {
    json!({
        "kubeletVersion": "v1.37.2", "containerRuntimeVersion": "containerd://2.4.2",
        "operatingSystem": "linux", "architecture": "amd64", "bootID": "", "kernelVersion": "",
        "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
    })
}

impl PlayedNode {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A Box that is placed here.
    #[must_use]
    pub fn takes(&self, it: BoxBuilder) -> BoxBuilder {
        it.node_selector(json!({LABEL: self.name}))
            .tolerations(json!([{"key": LABEL, "operator": "Exists"}]))
    }

    /// Makes the Node object, as a kubelet does that starts, and says that it is Ready.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn register(&self) -> Result<()> {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": {LABEL: self.name}},
            "spec": {"taints": [{"key": LABEL, "effect": "NoSchedule"}]},
        }))?;
        self.nodes.create(&PostParams::default(), &node).await?;
        self.says_ready(true).await
    }

    /// Says what runs on it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn has_versions(&self, kubelet: &str, runtime: &str) -> Result<()> {
        let info = json!({"kubeletVersion": kubelet, "containerRuntimeVersion": runtime});
        let patch = Patch::Merge(json!({"status": {"nodeInfo": info}}));
        self.nodes
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await
            .context("the node cannot say what runs on it")
            .map(drop)
    }

    /// Says whether it is Ready.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn says_ready(&self, ready: bool) -> Result<()> {
        let now = Time(Timestamp::now());
        let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
        let status = json!({
            "capacity": room,
            "allocatable": room,
            "nodeInfo": as_new_as_ours(),
            "conditions": [{
                "type": "Ready", "status": if ready { "True" } else { "False" },
                "reason": "Played", "message": "by a test",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
        });
        let patch = Patch::Merge(json!({"status": status}));
        self.nodes
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await
            .context("the node cannot say how it is")
            .map(drop)
    }

    /// Goes on saying that it is Ready for as long as this runs, while there is a Node object.
    pub async fn beats(&self) {
        loop {
            // It may just have been removed.
            let _ = self.says_ready(true).await;
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Sets a taint beside its own.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn taint(&self, key: &str, effect: &str) -> Result<()> {
        let node = self.nodes.get(&self.name).await?;
        let mut taints = serde_json::to_value(node.spec.and_then(|spec| spec.taints))?;
        if let Some(all) = taints.as_array_mut() {
            all.push(json!({"key": key, "value": "test", "effect": effect}));
        }
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        self.nodes
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Removes the Node object.
    ///
    /// # Errors
    /// When it stays.
    pub async fn remove(&self) -> Result<()> {
        self.nodes
            .delete(&self.name, &DeleteParams::default())
            .await?;
        gone(&self.nodes, &self.name, None).await
    }

    /// Waits until the pod of a Box is bound here, and says that its command runs.
    ///
    /// # Errors
    /// When it is not bound in time.
    pub async fn runs(&self, it: &LiveBox) -> Result<Pod> {
        let here = |pod: &Pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node == Some(&self.name)
        };
        let pod = it.has_a_pod("the pod to be bound", here).await?;
        let now = Time(Timestamp::now());
        let state = json!({"running": {"startedAt": now}});
        let status = json!({
            "phase": "Running", "startTime": now, "containerStatuses": [container(&state)],
        });
        self.reports(&pod.name_any(), status).await
    }

    /// Says that the command of a pod returned with this code, now.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn ends(&self, pod: &Pod, code: i32) -> Result<Pod> {
        let now = Time(Timestamp::now());
        let state = json!({
            "running": null,
            "terminated": {
                "exitCode": code, "reason": "Error", "startedAt": now, "finishedAt": now,
                "containerID": "played://box",
            },
        });
        let status = json!({"phase": "Failed", "containerStatuses": [container(&state)]});
        self.reports(&pod.name_any(), status).await
    }

    /// The command returns with this code, now, and the node's collector, which is played too, saves
    /// that it wrote nothing.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn ends_and_saves(&self, pod: &Pod, code: i32) -> Result<Pod> {
        let pod = self.ends(pod, code).await?;
        self.saves_output(&pod).await
    }

    /// Says, after a restart of the node, that the container is not there any more and that nobody
    /// saw how it ended, as the kubelet does: of a new container that was never made, with a code that
    /// is made up, and the old one before it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn ends_unseen(&self, pod: &Pod) -> Result<Pod> {
        let unknown = |message: &str| {
            json!({"terminated": {
                "exitCode": 137, "reason": "ContainerStatusUnknown", "message": message,
                "startedAt": null, "finishedAt": null,
            }})
        };
        let mut lost = container(&unknown(
            "The container could not be located when the pod was terminated",
        ));
        lost["containerID"] = Value::Null;
        lost["restartCount"] = json!(1);
        lost["lastState"] = unknown(
            "The container could not be located when the pod was deleted.  The container used to be \
             Running",
        );
        let status = json!({"phase": "Failed", "containerStatuses": [lost]});
        self.reports(&pod.name_any(), status).await
    }

    /// Plays the collector: nothing was written, and that is saved.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn saves_output(&self, pod: &Pod) -> Result<Pod> {
        let pod = self.pods.get(&pod.name_any()).await?;
        let mut kept = pod.finalizers().to_vec();
        kept.retain(|held| held != OUTPUT_FINALIZER);
        let patch = Patch::Merge(json!({"metadata": {
            "uid": pod.metadata.uid, "finalizers": kept,
            "annotations": {OUTPUT_ANNOTATION: r#"{"state":"Saved","bytes":0,"truncated":false}"#},
        }}));
        let params = PatchParams::default();
        let saved = self.pods.patch(&pod.name_any(), &params, &patch).await;
        saved.context("the played collector cannot let go of the pod")
    }

    async fn reports(&self, name: &str, status: Value) -> Result<Pod> {
        let patch = Patch::Merge(json!({"status": status}));
        let reported = self
            .pods
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        reported.with_context(|| format!("the played kubelet cannot report {name}"))
    }

    /// Deletes a pod for good, as a kubelet does at its end, and as the cluster does for a node that
    /// is gone.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn deletes_for_good(&self, pod: &Pod) -> Result<()> {
        let at_once = DeleteParams::default().grace_period(0);
        match self.pods.delete(&pod.name_any(), &at_once).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => other.map(drop).context("the pod cannot be deleted"),
        }
    }

    /// Waits until the scheduler and all others see it as described.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn is(&self, what: &str, is: impl Fn(&Node) -> bool) -> Result<()> {
        let found = |seen: Option<&Node>| seen.filter(|node| is(node)).map(drop);
        until(&self.nodes, &self.name, what, PATIENCE, found).await
    }
}

fn container(state: &Value) -> Value {
    json!({
        "name": boxes_crds::CONTAINER, "image": "busybox", "imageID": "", "ready": false,
        "restartCount": 0, "containerID": "played://box", "state": state,
    })
}
