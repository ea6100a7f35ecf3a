//! What people, nodes and other controllers do to a box.

use boxes_crds::{
    ABANDON_OUTPUT_ANNOTATION, CONFIRM_STOPPED_ANNOTATION, FORCE_STOP_ANNOTATION, OUTPUT_FINALIZER,
    POD_FINALIZER,
};
use k8s_openapi::api::core::v1::Pod;

use super::api::{Answer, Cluster};
use super::kubelet::Kubelet;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    StopBox,
    UnstopBox,
    DeleteBox,
    DeleteNamespace,
    EditImage,
    LowerDeadline(i64),
    ForceStop,
    ConfirmStopped,
    DeletePod {
        grace: Option<u32>,
    },
    EvictPod,
    PreemptPod,
    NodePressure,
    AddForeignFinalizer,
    DropForeignFinalizer,
    /// Someone strips our finalizer.
    StripEvidence,
    RefuseDeadlines,
    ForbidPods,
    RefusePods,
    AllowPods,
    KubeletFallsSilent,
    KubeletReturns,
    NodeVanishes,
    NodeOutOfService,
    LoseContainer,
    KubeletForgets,
    RestartController,
    CollectorStops,
    CollectorReturns,
    /// Someone strips the finalizer that waits for the output.
    StripOutput,
    AbandonOutput,
}

const FOREIGN: &str = "example.com/keep";

impl Disturbance {
    /// Does it. What is of the controller and the collector is left to the caller.
    pub(crate) fn happen(self, cluster: &mut Cluster, kubelet: &mut Kubelet) {
        let uid = cluster.pod_uid();
        match self {
            Self::StopBox => cluster.edit_box(|spec| spec.stopped = Some(true)),
            Self::UnstopBox => cluster.edit_box(|spec| spec.stopped = None),
            Self::DeleteBox => cluster.delete_box(),
            Self::DeleteNamespace => cluster.namespace_terminating = true,
            Self::EditImage => cluster.edit_box(|spec| "other".clone_into(&mut spec.image)),
            Self::LowerDeadline(seconds) => {
                cluster.edit_box(|spec| spec.active_deadline_seconds = Some(seconds));
            }
            Self::ForceStop => annotate(cluster, FORCE_STOP_ANNOTATION, uid),
            Self::ConfirmStopped => annotate(cluster, CONFIRM_STOPPED_ANNOTATION, uid),
            Self::DeletePod { grace } => delete(cluster, uid, grace),
            Self::EvictPod => disrupt(cluster, uid, "EvictionByEvictionAPI"),
            Self::PreemptPod => disrupt(cluster, uid, "PreemptionByScheduler"),
            Self::NodePressure => kubelet.evict("Evicted"),
            Self::AddForeignFinalizer => finalizers(cluster, |all| all.push(FOREIGN.to_owned())),
            Self::DropForeignFinalizer => {
                finalizers(cluster, |all| all.retain(|name| name != FOREIGN));
            }
            Self::StripEvidence => {
                finalizers(cluster, |all| all.retain(|name| name != POD_FINALIZER));
            }
            Self::RefuseDeadlines => cluster.refuses_deadlines = true,
            Self::ForbidPods => cluster.refuses_pods = Some(Answer::Forbidden),
            Self::RefusePods => cluster.refuses_pods = Some(Answer::Invalid),
            Self::AllowPods => cluster.refuses_pods = None,
            Self::KubeletFallsSilent => silence(cluster, kubelet, true),
            Self::KubeletReturns => silence(cluster, kubelet, false),
            Self::NodeVanishes => cluster.node = None,
            Self::NodeOutOfService => {
                silence(cluster, kubelet, true);
                if let Some(node) = &mut cluster.node {
                    node.out_of_service = true;
                }
            }
            Self::LoseContainer => kubelet.lose_container(),
            Self::KubeletForgets => forget(cluster, kubelet),
            Self::StripOutput => {
                finalizers(cluster, |all| all.retain(|name| name != OUTPUT_FINALIZER));
            }
            Self::AbandonOutput => annotate(cluster, ABANDON_OUTPUT_ANNOTATION, uid),
            Self::RestartController | Self::CollectorStops | Self::CollectorReturns => {}
        }
    }
}

/// The namespace controller deletes pods first, and looks at Boxes once none is left.
pub(crate) fn empty_namespace(cluster: &mut Cluster) {
    if !cluster.namespace_terminating {
        return;
    }
    match cluster.pod_uid() {
        Some(uid) => delete(cluster, Some(uid), None),
        None => cluster.delete_box(),
    }
}

fn annotate(cluster: &mut Cluster, key: &str, uid: Option<String>) {
    if let Some(uid) = uid {
        cluster.annotate_box(key, &uid);
    }
}

fn delete(cluster: &mut Cluster, uid: Option<String>, grace: Option<u32>) {
    if let Some(uid) = uid {
        let _ = cluster.delete_pod(&uid, None, grace);
    }
}

fn disrupt(cluster: &mut Cluster, uid: Option<String>, reason: &str) {
    cluster.pod_condition("DisruptionTarget", "True", reason, "");
    delete(cluster, uid, None);
}

fn finalizers(cluster: &mut Cluster, change: impl FnOnce(&mut Vec<String>)) {
    let deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let Some(pod) = &mut cluster.pod else { return };
    let all = pod.metadata.finalizers.get_or_insert_default();
    let before = all.clone();
    change(all);
    // A deleted object gets no new finalizers.
    if all.len() > before.len() && deleted(pod) {
        pod.metadata.finalizers = Some(before);
    }
    cluster.touch_pod();
    cluster.collect();
}

/// Before the start is recorded, such a pod cannot be told from one that never ran.
fn forget(cluster: &Cluster, kubelet: &mut Kubelet) {
    let run = cluster
        .object
        .as_ref()
        .and_then(|object| object.recorded().run);
    if run.is_some_and(|run| run.started_at.is_some()) {
        kubelet.forget();
    }
}

fn silence(cluster: &mut Cluster, kubelet: &mut Kubelet, silent: bool) {
    kubelet.silent = silent;
    if let Some(node) = &mut cluster.node {
        node.ready = !silent;
        node.out_of_service = false;
    }
}
