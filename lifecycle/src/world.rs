//! What a decision is made on.

use std::sync::Arc;

use boxes_crds::BoxSpec;
use jiff::Timestamp;

use crate::object::BoxView;
use crate::pod_view::PodView;
use crate::record::Record;
use crate::supervisor::Supervisor;

/// Everything that was observed about one Box at one time.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub struct World {
    /// When it was observed.
    pub now: Timestamp,
    /// The Box.
    pub object: BoxView,
    /// What is under the name of its pod.
    pub pod: Seen,
    /// The node of the pod, looked up only while a stop waits for its kubelet.
    pub node: NodeView,
    /// Whether the namespace is being deleted, as far as that was asked.
    pub namespace_terminating: bool,
    /// Whether the last creation of the pod found its name in use.
    pub name_collided: bool,
    /// The API server's last answer to a pod's creation, when it was a refusal.
    pub refusal: Option<Refusal>,
    /// Failed attempts at what this Box needs.
    pub trouble: Option<Trouble>,
    /// Since when a container that was recorded as running is missing from the pod's status.
    pub missing_since: Option<Timestamp>,
    /// When the pod's deletion was asked for, as seen before its kubelet moved that time.
    pub deletion_asked: Option<Timestamp>,
    /// Whether lowering the deadline of this pod was refused, so that it must be deleted instead.
    pub deadline_refused: bool,
    /// What a new pod's command runs under; nothing where the controller was given none.
    pub supervisor: Option<Arc<Supervisor>>,
    /// Whether the output of new pods is saved, and that of others waited for as long as it takes.
    pub saves_output: bool,
    /// Whether many Boxes change at once, so that the API server has enough to do.
    pub crowded: bool,
}

impl World {
    /// A world in which nothing but the Box was looked at and nothing is remembered.
    #[must_use]
    pub const fn unseen(object: BoxView, now: Timestamp) -> Self {
        Self {
            now,
            object,
            pod: Seen::NotSeen,
            node: NodeView::Unknown,
            namespace_terminating: false,
            name_collided: false,
            refusal: None,
            trouble: None,
            missing_since: None,
            deletion_asked: None,
            deadline_refused: false,
            supervisor: None,
            saves_output: false,
            crowded: false,
        }
    }

    /// The spec and the record, unless the Box is unreadable.
    #[must_use]
    pub fn readable(&self) -> Option<(&BoxSpec, &Record)> {
        self.object
            .content
            .as_ref()
            .ok()
            .map(|(spec, record)| (spec, record))
    }
}

/// What the cluster holds under the name of a Box's pod. A failed read is none of these: it is an
/// error of the pass, and no decision is made on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The cache has none. Good enough to try a creation, which then may find one; for nothing
    /// else.
    NotSeen,
    /// A live read answered that there is none, or one with another UID than the recorded.
    Absent,
    /// The pod of this Box.
    Ours(Box<PodView>),
    /// A pod that is not of this Box, and no pod of this Box can have existed.
    Foreign,
}

impl Seen {
    /// Judges what a read found under the name of a Box's pod. `live` tells a read of the API
    /// server from one of a cache.
    #[must_use]
    pub fn judge(object: &BoxView, found: Option<PodView>, live: bool) -> Self {
        let recorded = object.recorded_pod_uid.as_deref();
        match found {
            // A recorded UID names one pod for all time, whatever became of its label and owner.
            Some(pod) if recorded.map_or_else(|| is_of(object, &pod), |uid| uid == pod.uid()) => {
                Self::Ours(Box::new(pod))
            }
            // The recorded pod is positively gone: its name is somebody else's.
            Some(_) if recorded.is_some() && live => Self::Absent,
            Some(_) if recorded.is_some() => Self::NotSeen,
            Some(_) => Self::Foreign,
            None if live => Self::Absent,
            None => Self::NotSeen,
        }
    }

    /// The pod of this Box, if it is there.
    #[must_use]
    pub fn ours(&self) -> Option<&PodView> {
        match self {
            Self::Ours(pod) => Some(pod),
            Self::NotSeen | Self::Absent | Self::Foreign => None,
        }
    }
}

/// A pod is of a Box when the Box's UID is its controller's and our label says the same: neither
/// alone is something that only we write.
fn is_of(object: &BoxView, pod: &PodView) -> bool {
    let label = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|all| all.get(boxes_crds::BOX_UID_LABEL));
    pod.owner_uid() == Some(object.uid())
        && label.map(String::as_str) == Some(object.uid())
        && !object.uid().is_empty()
}

/// What is known about the node of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeView {
    /// Nobody asked, or nobody could answer.
    #[default]
    Unknown,
    /// The Node object exists.
    Present {
        /// Its Ready condition is True.
        ready: bool,
        /// It carries the taint `node.kubernetes.io/out-of-service`.
        out_of_service: bool,
    },
    /// Live reads found no Node object: now, and first at `since`; the kubelet has not reported the
    /// pod between.
    AbsentSince {
        /// When the first of these reads was.
        since: Timestamp,
    },
}

/// The API server's refusal of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 422: this pod can never be.
    Invalid {
        /// The server's message.
        message: String,
    },
    /// 403: a quota, Pod Security, a missing object, somebody's webhook. It may pass.
    Forbidden {
        /// The server's message.
        message: String,
        /// When to ask again.
        retry_at: Timestamp,
    },
    /// 403 because the namespace is being deleted: nothing is created there any more.
    NamespaceTerminating,
}

/// Failed attempts, in a row, at what a Box needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How many.
    pub attempts: u32,
    /// The last error.
    pub error: String,
    /// When the next attempt is due.
    pub next: Timestamp,
}

impl Trouble {
    /// Attempts from which on a clean-up counts as stalled.
    const STALLED: u32 = 8;

    /// Whether a person should know.
    #[must_use]
    pub const fn is_stalled(&self) -> bool {
        self.attempts >= Self::STALLED
    }
}
