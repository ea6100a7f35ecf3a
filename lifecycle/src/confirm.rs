//! Whether a pod is confirmed to have stopped (contract §5.4). What is not confirmed is unknown,
//! never stopped.

use jiff::{SignedDuration, Timestamp};

use crate::cause::deleted_by_pod_gc;
use crate::object::BoxView;
use crate::pod_view::PodView;
use crate::world::{NodeView, World};

/// How long the status of a container that was recorded as running may be missing before it is
/// taken for ended: a restarted kubelet can write that while the container still dies.
pub(crate) const MISSING: SignedDuration = SignedDuration::from_secs(60);

/// How far apart the two reads are that find no Node object.
pub(crate) const NODE_ABSENT: SignedDuration = SignedDuration::from_secs(60);

/// What is known about the stop of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// By the kubelet's word nothing of it runs.
    Stopped,
    /// It was never bound to a node, and being deleted it never will be.
    NeverBound,
    /// Its node is positively gone, or a person says that it is stopped.
    NodeGone,
    /// A container that was recorded as running has vanished from its status; wait until then.
    MissingUntil(Timestamp),
    /// Not confirmed.
    No,
}

impl Confirmation {
    /// Whether the pod may be released, once its ending is recorded.
    #[must_use]
    pub const fn is_stopped(self) -> bool {
        match self {
            Self::Stopped | Self::NeverBound | Self::NodeGone => true,
            Self::MissingUntil(_) | Self::No => false,
        }
    }
}

/// Judges whether a pod has stopped.
#[must_use]
pub fn confirmation(world: &World, pod: &PodView) -> Confirmation {
    let by_kubelet = by_kubelet(world, pod);
    if by_kubelet != Confirmation::No {
        return by_kubelet;
    }
    if node_gone(world.now, world.node) || world.object.confirms_stopped(pod.uid()) {
        return Confirmation::NodeGone;
    }
    Confirmation::No
}

fn by_kubelet(world: &World, pod: &PodView) -> Confirmation {
    if pod.node.is_none() {
        return if pod.deleting() {
            Confirmation::NeverBound
        } else {
            Confirmation::No
        };
    }
    if !pod.phase.is_terminal() || pod.start_time.is_none() || pod.any_running {
        return Confirmation::No;
    }
    // The phase is then the collector's word, not the kubelet's.
    if deleted_by_pod_gc(pod) && !pod.has_ended() {
        return Confirmation::No;
    }
    if !missing(&world.object, pod) {
        return Confirmation::Stopped;
    }
    let since = world.missing_since.unwrap_or(world.now);
    match since.checked_add(MISSING) {
        Ok(until) if until > world.now => Confirmation::MissingUntil(until),
        Ok(_) | Err(_) => Confirmation::Stopped,
    }
}

/// Whether the command is recorded as started and the pod's status now knows nothing of its end.
pub(crate) fn missing(object: &BoxView, pod: &PodView) -> bool {
    let started = object
        .content
        .as_ref()
        .is_ok_and(|(_, record)| record.started());
    started && pod.phase.is_terminal() && !pod.has_ended()
}

/// Whether the node can run nothing any more.
pub(crate) fn node_gone(now: Timestamp, node: NodeView) -> bool {
    match node {
        NodeView::Unknown => false,
        NodeView::Present {
            ready,
            out_of_service,
        } => out_of_service && !ready,
        NodeView::AbsentSince { since } => now.duration_since(since) >= NODE_ABSENT,
    }
}
