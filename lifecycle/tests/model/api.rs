//! The API server and its rules for pods, the scheduler, and the collector of lost pods.

use boxes_crds::POD_FINALIZERS;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::boxes::StoredBox;

/// What the API server answers when it does not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Conflict,
    NotFound,
    AlreadyExists,
    Forbidden,
    Invalid,
    NamespaceTerminating,
}

pub(crate) type Done = Result<(), Answer>;

/// A node, as far as the rules look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub ready: bool,
    pub out_of_service: bool,
}

/// What the API server holds.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub now: Timestamp,
    pub object: Option<StoredBox>,
    /// The pod under the name that the Box derives, whosever it is.
    pub pod: Option<Pod>,
    pub node: Option<Node>,
    pub namespace_terminating: bool,
    /// Answers every creation of a pod with this.
    pub refuses_pods: Option<Answer>,
    /// Answers every change of a pod's deadline with 403.
    pub refuses_deadlines: bool,
    /// Seconds until a pod is bound; never when absent.
    pub schedules_after: Option<i64>,
    pub pods_made: u32,
    node_absent_since: Option<Timestamp>,
    version: u64,
}

/// The wire knows whole seconds only.
pub(crate) fn stamp(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap())
}

impl Cluster {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            now,
            object: None,
            pod: None,
            node: Some(Node {
                ready: true,
                out_of_service: false,
            }),
            namespace_terminating: false,
            refuses_pods: None,
            refuses_deadlines: false,
            schedules_after: Some(0),
            pods_made: 0,
            node_absent_since: None,
            version: 1,
        }
    }

    pub(crate) fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// The pod, if it has this UID and, when one is named, this version.
    fn the_pod(&mut self, uid: &str, version: Option<&str>) -> Result<&mut Pod, Answer> {
        let pod = self.pod.as_mut().ok_or(Answer::NotFound)?;
        let same = pod.metadata.uid.as_deref() == Some(uid)
            && version.is_none_or(|it| pod.metadata.resource_version.as_deref() == Some(it));
        if same { Ok(pod) } else { Err(Answer::Conflict) }
    }

    pub(crate) fn create_pod(&mut self, mut pod: Pod) -> Done {
        if self.namespace_terminating {
            return Err(Answer::NamespaceTerminating);
        }
        if let Some(answer) = self.refuses_pods {
            return Err(answer);
        }
        if self.pod.is_some() {
            return Err(Answer::AlreadyExists);
        }
        self.pods_made += 1;
        pod.metadata.uid = Some(format!("pod-{}", self.pods_made));
        pod.metadata.creation_timestamp = Some(stamp(self.now));
        pod.metadata.resource_version = Some(self.next_version());
        pod.metadata.generation = Some(1);
        self.pod = Some(pod);
        Ok(())
    }

    pub(crate) fn lower_deadline(&mut self, uid: &str, version: &str, seconds: i64) -> Done {
        let refused = self.refuses_deadlines;
        let pod = self.the_pod(uid, Some(version))?;
        if refused {
            return Err(Answer::Forbidden);
        }
        let spec = pod.spec.as_mut().unwrap();
        let lower = spec
            .active_deadline_seconds
            .is_none_or(|has| seconds <= has);
        assert!(
            lower,
            "the API server only lets a pod's deadline be lowered"
        );
        spec.active_deadline_seconds = Some(seconds);
        self.touch_pod();
        Ok(())
    }

    pub(crate) fn delete_pod(
        &mut self,
        uid: &str,
        version: Option<&str>,
        grace: Option<u32>,
    ) -> Done {
        let now = self.now;
        let pod = self.the_pod(uid, version)?;
        let spec = pod.spec.as_ref().unwrap();
        let asked = grace.map_or(
            spec.termination_grace_period_seconds.unwrap_or(30),
            i64::from,
        );
        let nothing_to_wait_for = spec.node_name.is_none() || is_terminal(pod);
        let grace = if nothing_to_wait_for { 0 } else { asked };
        let had = pod.metadata.deletion_grace_period_seconds;
        if had.is_none_or(|had| grace < had) {
            let asked_at = pod
                .metadata
                .deletion_timestamp
                .as_ref()
                .map_or(now, |time| {
                    time.0 - SignedDuration::from_secs(had.unwrap_or(0))
                });
            pod.metadata.deletion_timestamp =
                Some(stamp(asked_at + SignedDuration::from_secs(grace)));
            pod.metadata.deletion_grace_period_seconds = Some(grace);
            self.touch_pod();
        }
        self.collect();
        Ok(())
    }

    pub(crate) fn release_pod(&mut self, uid: &str, version: &str) -> Done {
        let pod = self.the_pod(uid, Some(version))?;
        let finalizers = pod.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|name| !POD_FINALIZERS.contains(&name.as_str()));
        self.touch_pod();
        self.collect();
        Ok(())
    }

    pub(crate) fn touch_pod(&mut self) {
        let version = self.next_version();
        if let Some(pod) = &mut self.pod {
            pod.metadata.resource_version = Some(version);
        }
    }

    /// A deleted pod goes once its grace is over and no finalizer holds it.
    pub(crate) fn collect(&mut self) {
        let goes = self.pod.as_ref().is_some_and(|pod| {
            let meta = &pod.metadata;
            let held = meta.finalizers.as_ref().is_some_and(|all| !all.is_empty());
            meta.deletion_grace_period_seconds == Some(0) && !held
        });
        if goes {
            self.pod = None;
        }
    }

    /// Sets a condition of the pod.
    pub(crate) fn pod_condition(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let since = Some(stamp(self.now));
        let Some(pod) = &mut self.pod else { return };
        let all = pod
            .status
            .get_or_insert_default()
            .conditions
            .get_or_insert_default();
        if all
            .iter()
            .any(|known| known.type_ == type_ && known.status == status)
        {
            return;
        }
        all.retain(|known| known.type_ != type_);
        all.push(PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since,
            ..PodCondition::default()
        });
        self.touch_pod();
    }

    /// The scheduler: binds what is not being deleted.
    pub(crate) fn schedule(&mut self) {
        let Some(pod) = &mut self.pod else { return };
        let spec = pod.spec.as_mut().unwrap();
        if spec.node_name.is_some() || pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let created = pod.metadata.creation_timestamp.as_ref().unwrap().0;
        let waited = self.now.duration_since(created);
        let due = self
            .schedules_after
            .is_some_and(|after| waited.as_secs() >= after);
        if due && self.node.is_some() {
            spec.node_name = Some("node".to_owned());
            self.pod_condition("PodScheduled", "True", "", "");
        } else {
            self.pod_condition("PodScheduled", "False", "Unschedulable", "no room");
        }
    }

    /// The collector of pods whose node is gone, or out of service while they are deleted.
    pub(crate) fn collect_lost(&mut self) {
        let gone = if let Some(node) = self.node {
            self.node_absent_since = None;
            node.out_of_service && !node.ready && self.pod_is_deleted()
        } else {
            let since = *self.node_absent_since.get_or_insert(self.now);
            self.now.duration_since(since).as_secs() >= 40
        };
        let Some(pod) = self.pod.as_mut().filter(|_| gone) else {
            return;
        };
        let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
        if pod.spec.as_ref().unwrap().node_name.is_none() || forced {
            return;
        }
        let uid = pod.metadata.uid.clone().unwrap();
        if !is_terminal(pod) {
            pod.status.get_or_insert_default().phase = Some("Failed".to_owned());
            self.pod_condition(
                "DisruptionTarget",
                "True",
                "DeletionByPodGC",
                "node is gone",
            );
        }
        let _ = self.delete_pod(&uid, None, Some(0));
    }

    fn pod_is_deleted(&self) -> bool {
        let pod = self.pod.as_ref();
        pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    pub(crate) fn pod_uid(&self) -> Option<String> {
        self.pod.as_ref()?.metadata.uid.clone()
    }
}

pub(crate) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
