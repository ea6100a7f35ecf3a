//! What, other than the command itself, ended a box, and when that could reach the command.

use boxes_crds::{BoxSpec, Reason};
use jiff::{SignedDuration, Timestamp};

use crate::manifest::NO_DEADLINE;
use crate::pod_view::{Phase, PodView};
use crate::record::Record;
use crate::world::World;

/// The condition type under which every planned disruption of a pod is announced.
const DISRUPTION: &str = "DisruptionTarget";

/// Something that ends boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The reason that it gives to the ending.
    pub reason: Reason,
    /// When it could first reach the command. `None` when that cannot be compared with the
    /// command's end: the cause then wins.
    pub at: Option<Timestamp>,
}

/// How far apart the clocks of a node and of the API server may be: a stop that was received had a
/// cause, which may seem a little later than the end that it led to.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(60);

/// Until when something can have reached the command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// The supervisor received no stop before the command ended: nothing has.
    Never,
    /// The command ended then, in whole seconds: a tie goes to the cause.
    Second(Option<Timestamp>),
    /// The command ended about then, after the supervisor had received a stop.
    AboutWhen(Option<Timestamp>),
    /// Nobody knows when it ended.
    Ever,
}

impl Until {
    fn includes(self, cause: &Cause) -> bool {
        let last = match self {
            Self::Never => return false,
            Self::Ever => None,
            Self::Second(finished) => finished,
            Self::AboutWhen(finished) => finished.and_then(|it| it.checked_add(CLOCKS_APART).ok()),
        };
        !matches!((cause.at, last), (Some(at), Some(last)) if last < at)
    }
}

/// The cause of an end: of those that can have reached the command by then the earliest, and among
/// equals the first of the list.
pub(crate) fn cause(
    world: &World,
    spec: &BoxSpec,
    record: &Record,
    pod: &PodView,
    until: Until,
) -> Option<Reason> {
    let named = [
        own_deadline(spec, record, pod),
        stop(record),
        kubelet_eviction(pod),
        disruption(pod),
    ];
    let reached = |cause: &Cause| until.includes(cause);
    let earliest = named
        .into_iter()
        .flatten()
        .filter(reached)
        .min_by_key(|cause| cause.at.unwrap_or(Timestamp::MAX));
    // What remains when nothing above explains it.
    earliest
        .or_else(|| deletion(world, pod).filter(reached))
        .map(|cause| cause.reason)
}

/// The Box's own deadline, enforced by the kubelet. The pod's reason counts only in a failed pod,
/// and only when no stop of ours could have lowered the deadline first.
fn own_deadline(spec: &BoxSpec, record: &Record, pod: &PodView) -> Option<Cause> {
    let exceeded = pod.phase == Phase::Failed && pod.reason.as_deref() == Some("DeadlineExceeded");
    let deadline = SignedDuration::from_secs(deadline(spec, record, pod)?);
    let at = pod.start_time?.checked_add(deadline).ok()?;
    exceeded.then_some(Cause {
        reason: Reason::Timeout,
        at: Some(at),
    })
}

/// The deadline that the box runs under: its pod's, which the spec may have left behind between the
/// pod's creation and its record; once a stop may have lowered that, the spec's.
pub(crate) fn deadline(spec: &BoxSpec, record: &Record, pod: &PodView) -> Option<i64> {
    if record.stop_requested() {
        spec.active_deadline_seconds
    } else {
        pod.deadline_seconds
            .filter(|seconds| *seconds < NO_DEADLINE)
    }
}

fn stop(record: &Record) -> Option<Cause> {
    let stop = record.status.stop.as_ref()?;
    Some(Cause {
        reason: Reason::Stopped,
        at: Some(stop.requested_at.0),
    })
}

/// An eviction or a node shutdown by the kubelet. It stamps its condition again at the end, so its
/// time says nothing.
fn kubelet_eviction(pod: &PodView) -> Option<Cause> {
    if pod.phase != Phase::Failed {
        return None;
    }
    let reason = match pod.reason.as_deref() {
        Some("Evicted" | "Terminated" | "NodeShutdown") => Reason::Evicted,
        Some("Preempting") => Reason::Preempted,
        _ => return None,
    };
    Some(Cause { reason, at: None })
}

/// A planned disruption: it counts once it is acted on.
fn disruption(pod: &PodView) -> Option<Cause> {
    let condition = pod.true_condition(DISRUPTION)?;
    if !pod.deleting() && pod.phase != Phase::Failed {
        return None;
    }
    let (reason, at) = match condition.reason.as_deref() {
        Some("EvictionByEvictionAPI" | "DeletionByTaintManager") => {
            (Reason::Evicted, condition.since)
        }
        Some("PreemptionByScheduler") => (Reason::Preempted, condition.since),
        Some("TerminationByKubelet") => (Reason::Evicted, None),
        _ => return None,
    };
    Some(Cause { reason, at })
}

/// Somebody deleted the pod. Our own deletion is never a cause: before it there is a recorded stop
/// or a recorded ending. Where the Box was deleted first, the garbage collector did it for that.
fn deletion(world: &World, pod: &PodView) -> Option<Cause> {
    let stamped = pod.deletion_asked_at()?;
    // What a disruption deleted was deleted when that was announced.
    let asked = deletion_asked(world).or_else(|| disruption(pod)?.at);
    let with_its_box = world
        .object
        .deletion_asked_at()
        .is_some_and(|at| at <= asked.unwrap_or(stamped));
    Some(Cause {
        reason: if with_its_box {
            Reason::Stopped
        } else {
            Reason::PodDeleted
        },
        at: asked,
    })
}

/// When the deletion of the pod was asked for, as it is seen now or was seen before: to be
/// remembered, since the kubelet's last delete moves that time.
#[must_use]
pub fn deletion_asked(world: &World) -> Option<Timestamp> {
    let seen = || {
        let pod = world.pod.ours().filter(|pod| !is_restamped(pod))?;
        pod.deletion_asked_at()
    };
    world.deletion_asked.or_else(seen)
}

/// Whether the time of the deletion may be that of the kubelet's last one: deleting a pod again with
/// no grace moves its `deletionTimestamp` to that moment. A status that does not answer the deletion
/// is older than it, and can be compared with it.
fn is_restamped(pod: &PodView) -> bool {
    let answered = match (pod.observed_generation, pod.metadata.generation) {
        (Some(observed), Some(generation)) => observed >= generation,
        (None, _) | (_, None) => false,
    };
    answered && pod.metadata.deletion_grace_period_seconds == Some(0)
}

/// Whether the pod was declared lost by the cluster, because its node is gone.
pub(crate) fn deleted_by_pod_gc(pod: &PodView) -> bool {
    pod.true_condition(DISRUPTION)
        .is_some_and(|condition| condition.reason.as_deref() == Some("DeletionByPodGC"))
}
