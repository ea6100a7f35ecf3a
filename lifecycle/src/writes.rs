//! The one next write of a Box, decided on what is recorded (contract §5).

use boxes_crds::{BoxSpec, condition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use crate::confirm::{Confirmation, confirmation};
use crate::ending::verdict;
use crate::manifest::pod_for;
use crate::output;
use crate::pod_view::PodView;
use crate::record::Record;
use crate::world::{Refusal, Seen, World};

/// One write to the cluster. Whatever it touches is named by UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Put our finalizer on the Box, before a pod exists.
    HoldBox,
    /// Make the pod.
    CreatePod(Box<Pod>),
    /// Lower the pod's `activeDeadlineSeconds`, only if it is still the object that was seen.
    LowerDeadline {
        /// UID of the pod.
        uid: String,
        /// Resource version that the decision was made on.
        resource_version: String,
        /// The new deadline.
        seconds: i64,
    },
    /// Delete the pod.
    DeletePod {
        /// UID of the pod.
        uid: String,
        /// Resource version, when the decision holds for this very state alone.
        resource_version: Option<String>,
        /// Grace in seconds; the pod's own when absent.
        grace: Option<u32>,
    },
    /// Take our finalizers off the pod.
    ReleasePod {
        /// UID of the pod.
        uid: String,
        /// Resource version that the decision was made on.
        resource_version: String,
    },
    /// Delete the Box, whose time after its end is over.
    DeleteBox,
    /// Take our finalizer off the Box.
    ReleaseBox,
}

impl Write {
    /// Whether the pass that it brings sees more: a status decided before it is not worth writing.
    #[must_use]
    pub const fn outdates_status(&self) -> bool {
        match self {
            Self::HoldBox | Self::CreatePod(_) | Self::DeleteBox | Self::ReleaseBox => true,
            Self::LowerDeadline { .. } | Self::DeletePod { .. } | Self::ReleasePod { .. } => false,
        }
    }

    /// A static word for logs and metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::HoldBox => "hold_box",
            Self::CreatePod(_) => "create_pod",
            Self::LowerDeadline { .. } => "lower_deadline",
            Self::DeletePod { .. } => "delete_pod",
            Self::ReleasePod { .. } => "release_pod",
            Self::DeleteBox => "delete_box",
            Self::ReleaseBox => "release_box",
        }
    }
}

type Rule = fn(&World, &BoxSpec, &Record) -> Option<Write>;

/// In order of precedence; the list is the specification.
const RULES: [Rule; 7] = [
    start,
    stop,
    follow_deadline,
    release_pod,
    delete_pod,
    delete_expired,
    release_box,
];

/// The next write.
pub(crate) fn next(world: &World, spec: &BoxSpec, record: &Record) -> Option<Write> {
    RULES.iter().find_map(|rule| rule(world, spec, record))
}

/// Hold the record, then make the pod.
fn start(world: &World, spec: &BoxSpec, record: &Record) -> Option<Write> {
    if !wants_pod(world, spec, record) || !may_ask(world) || verdict(world).is_some() {
        return None;
    }
    let pod = pod_for(
        &world.object,
        spec,
        world.supervisor.as_deref(),
        world.saves_output,
    )
    .ok()?;
    if !world.object.holds_record() {
        return Some(Write::HoldBox);
    }
    Some(Write::CreatePod(Box::new(pod)))
}

/// Whether the Box asks for a pod that it never had.
pub(crate) fn wants_pod(world: &World, spec: &BoxSpec, record: &Record) -> bool {
    let never_ran =
        record.status.run.is_none() && record.ending.is_none() && !record.stop_requested();
    let asked = spec.stopped != Some(true) && !world.object.deleting();
    let room = match world.pod {
        Seen::NotSeen | Seen::Absent => true,
        Seen::Ours(_) | Seen::Foreign => false,
    };
    never_ran && asked && room && !world.namespace_terminating
}

/// Whether the API server may be asked for the pod, after what it last answered.
fn may_ask(world: &World) -> bool {
    match &world.refusal {
        None => true,
        Some(Refusal::Forbidden { retry_at, .. }) => world.now >= *retry_at,
        Some(Refusal::Invalid { .. } | Refusal::NamespaceTerminating) => false,
    }
}

/// Ask the pod to stop, without deleting it where that is possible: on a recorded stop, and after a
/// recorded ending for what still runs beside the command.
fn stop(world: &World, _: &BoxSpec, record: &Record) -> Option<Write> {
    let pod = world.pod.ours()?;
    // An ended command's pod ends by itself unless another container holds it up. When that end is
    // not recorded yet, the command ended by itself.
    let wanted = match record.ending {
        Some(_) => pod.others_alive || !pod.has_ended(),
        None => record.stop_requested() && !pod.has_ended(),
    };
    if !wanted || pod.deleting() || pod.phase.is_terminal() {
        return None;
    }
    let uid = pod.uid().to_owned();
    let resource_version = pod.resource_version().to_owned();
    if pod.node.is_none() {
        // A binding that wins the race changes the version, and the pod is then stopped as bound.
        return Some(Write::DeletePod {
            uid,
            resource_version: Some(resource_version),
            grace: None,
        });
    }
    if pod.deadline_seconds.is_some_and(|seconds| seconds <= 1) {
        return None;
    }
    let forced = world.object.annotation(boxes_crds::FORCE_STOP_ANNOTATION) == Some(pod.uid());
    if forced || world.deadline_refused {
        let grace = forced.then_some(1);
        return Some(Write::DeletePod {
            uid,
            resource_version: None,
            grace,
        });
    }
    Some(Write::LowerDeadline {
        uid,
        resource_version,
        seconds: 1,
    })
}

/// A deadline that the user lowered reaches the pod.
fn follow_deadline(world: &World, spec: &BoxSpec, record: &Record) -> Option<Write> {
    let pod = world.pod.ours()?;
    let seconds = spec.active_deadline_seconds?;
    let lower = pod.deadline_seconds.is_none_or(|current| seconds < current);
    // Of a command that has ended it would only make that end look like the deadline's.
    let runs = !pod.has_ended() && !pod.deleting() && !pod.phase.is_terminal();
    (lower && runs && record.ending.is_none() && !world.deadline_refused).then(|| {
        Write::LowerDeadline {
            uid: pod.uid().to_owned(),
            resource_version: pod.resource_version().to_owned(),
            seconds,
        }
    })
}

/// The ending and what is saved of the output are recorded and the stop is confirmed: the evidence
/// may go.
fn release_pod(world: &World, _: &BoxSpec, record: &Record) -> Option<Write> {
    let pod = releasable(world, record)?;
    pod.is_held().then(|| Write::ReleasePod {
        uid: pod.uid().to_owned(),
        resource_version: pod.resource_version().to_owned(),
    })
}

fn delete_pod(world: &World, _: &BoxSpec, record: &Record) -> Option<Write> {
    let pod = releasable(world, record)?;
    // No kubelet is left to confirm the deletion of a pod whose node is gone.
    let lost = confirmation(world, pod) == Confirmation::NodeGone;
    let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
    if pod.deleting() && (forced || !lost) {
        return None;
    }
    let uid = pod.uid().to_owned();
    Some(Write::DeletePod {
        uid,
        resource_version: None,
        grace: lost.then_some(0),
    })
}

fn releasable<'a>(world: &'a World, record: &Record) -> Option<&'a PodView> {
    let pod = world.pod.ours()?;
    let over = record.ending.is_some() && confirmation(world, pod).is_stopped();
    (over && output::is_settled(&record.status, world, pod)).then_some(pod)
}

fn delete_expired(world: &World, spec: &BoxSpec, record: &Record) -> Option<Write> {
    let due = expires_at(spec, record)?;
    (world.now >= due && !world.object.deleting()).then_some(Write::DeleteBox)
}

/// When a finished and cleaned up Box is to be deleted.
pub(crate) fn expires_at(spec: &BoxSpec, record: &Record) -> Option<Timestamp> {
    let seconds = spec.ttl_seconds_after_finished?;
    if record.ending.is_none() || !record.cleaned_up() {
        return None;
    }
    let ended = record
        .status
        .run
        .as_ref()
        .and_then(|run| run.ended_at.as_ref());
    let noticed = record
        .condition(condition::ENDED)
        .map(|known| &known.last_transition_time);
    ended
        .or(noticed)?
        .0
        .checked_add(SignedDuration::from_secs(seconds))
        .ok()
}

/// The Box may go once its pod is positively gone and, if it ran, its ending is recorded.
fn release_box(world: &World, _: &BoxSpec, record: &Record) -> Option<Write> {
    let without_pod = match world.pod {
        Seen::Absent | Seen::Foreign => true,
        Seen::Ours(_) | Seen::NotSeen => false,
    };
    let recorded = record.status.run.is_none() || record.ending.is_some();
    let asked = world.object.deleting() && world.object.holds_record();
    (asked && without_pod && recorded).then_some(Write::ReleaseBox)
}
