//! The decision: at most one write, at most one status, and when to look again.

use boxes_crds::{ABANDON_OUTPUT_ANNOTATION, BoxSpec, BoxStatus};
use jiff::SignedDuration;

use crate::confirm::{Confirmation, confirmation};
use crate::ending::refused_until;
use crate::output;
use crate::pod_view::PodView;
use crate::record::Record;
use crate::status::{Proposal, propose, start_deadline};
use crate::world::{NodeView, Refusal, Seen, World};
use crate::writes::{self, Write};

/// How often a stop that waits for its kubelet looks at the node.
const NODE_PACE: SignedDuration = SignedDuration::from_secs(15);

/// How often a name that another's pod holds is looked at: nothing tells when it becomes free.
const TAKEN_PACE: SignedDuration = SignedDuration::from_secs(30);

/// What to do about a Box.
#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    /// The write to make, decided on the recorded status alone.
    pub write: Option<Write>,
    /// The whole status to write, if it changes.
    pub status: Option<Box<BoxStatus>>,
    /// When to look again although nothing changed.
    pub wake: Option<SignedDuration>,
}

/// Decides. Total and synchronous.
#[must_use]
pub fn decide(world: &World) -> Decision {
    match world.readable() {
        None => Decision {
            write: release_unreadable(world),
            wake: unreadable_wake(world),
            ..Decision::default()
        },
        Some((spec, record)) => decide_readable(world, spec, record),
    }
}

fn decide_readable(world: &World, spec: &BoxSpec, record: &Record) -> Decision {
    let (status, settle) = match propose(world, spec, record) {
        Proposal::Same => (None, None),
        Proposal::Later(wait) => (None, Some(wait)),
        Proposal::Write(status) => (Some(status), None),
    };
    Decision {
        write: writes::next(world, spec, record),
        status,
        wake: wake(world, spec, record).into_iter().chain(settle).min(),
    }
}

/// When something is due that no watch event announces.
fn wake(world: &World, spec: &BoxSpec, record: &Record) -> Option<SignedDuration> {
    let until = |at: jiff::Timestamp| at.duration_since(world.now).max(SignedDuration::ZERO);
    let pod = world.pod.ours();
    [
        pod.filter(|_| !record.stop_requested())
            .and_then(|pod| start_deadline(spec, record, pod))
            .filter(|_| record.ending.is_none())
            .map(until),
        writes::expires_at(spec, record)
            .filter(|_| !world.object.deleting())
            .map(until),
        pod.and_then(|pod| awaited(world, record, pod)),
        pod.and_then(|pod| output_awaited(world, record, pod)),
        (world.pod == Seen::Foreign).then_some(TAKEN_PACE),
        refusal_over(world)
            .filter(|_| writes::wants_pod(world, spec, record))
            .map(until),
        refused_until(spec, record)
            .filter(|_| spec.stopped != Some(true) && !world.object.deleting() && pod.is_none())
            .map(until),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// While a stop waits for its kubelet, its node is looked at again and again.
fn awaited(world: &World, record: &Record, pod: &PodView) -> Option<SignedDuration> {
    match confirmation(world, pod) {
        Confirmation::MissingUntil(until) => Some(until.duration_since(world.now)),
        Confirmation::No if waits_for_kubelet(world, record, pod) => Some(match world.node {
            NodeView::Present { ready: true, .. } => NODE_PACE * 2,
            NodeView::Present { .. } | NodeView::AbsentSince { .. } | NodeView::Unknown => {
                NODE_PACE
            }
        }),
        Confirmation::No
        | Confirmation::Stopped
        | Confirmation::NeverBound
        | Confirmation::NodeGone => None,
    }
}

/// While a pod waits for its output, first it is patience that ends, then its node is looked at.
fn output_awaited(world: &World, record: &Record, pod: &PodView) -> Option<SignedDuration> {
    if !output::is_awaited(&record.status, world, pod) {
        return None;
    }
    let late = output::is_late_at(&record.status).map(|at| at.duration_since(world.now));
    Some(
        late.filter(SignedDuration::is_positive)
            .unwrap_or(NODE_PACE),
    )
}

/// Whether a stop of this pod is awaited that only a kubelet can confirm.
pub(crate) fn waits_for_kubelet(world: &World, record: &Record, pod: &PodView) -> bool {
    let stopping = record.stop_requested() || record.ending.is_some() || world.object.deleting();
    pod.node.is_some() && (stopping || pod.deleting())
}

/// When a refused creation is tried again.
fn refusal_over(world: &World) -> Option<jiff::Timestamp> {
    match world.refusal.as_ref()? {
        Refusal::Forbidden { retry_at, .. } => Some(*retry_at),
        Refusal::Invalid { .. } | Refusal::NamespaceTerminating => None,
    }
}

/// While the deletion of an unreadable Box's pod waits for its kubelet, its node is looked at.
fn unreadable_wake(world: &World) -> Option<SignedDuration> {
    let pod = world.pod.ours()?;
    let awaited = pod.deleting() && pod.node.is_some() && !confirmation(world, pod).is_stopped();
    (awaited && world.namespace_terminating).then_some(NODE_PACE)
}

/// Nothing of an unreadable Box is touched, until a person confirms that its pod is stopped, or its
/// namespace is being deleted and the kubelet confirms it: then the finalizers go, and nothing else.
fn release_unreadable(world: &World) -> Option<Write> {
    let pod = world.pod.ours();
    let uid = pod
        .map(PodView::uid)
        .or(world.object.recorded_pod_uid.as_deref());
    let by_person = uid.is_some_and(|uid| world.object.confirms_stopped(uid));
    if let Some(pod) = pod {
        let by_kubelet = world.namespace_terminating && confirmation(world, pod).is_stopped();
        let unwanted = world.object.deleting() || world.namespace_terminating;
        let abandoned = world.object.annotation(ABANDON_OUTPUT_ANNOTATION) == Some(pod.uid());
        let saved = !pod.holds_output() || unwanted || abandoned || !world.saves_output;
        if (by_person || by_kubelet) && pod.is_held() && saved {
            return Some(Write::ReleasePod {
                uid: pod.uid().to_owned(),
                resource_version: pod.resource_version().to_owned(),
            });
        }
        if !by_person {
            return None;
        }
    }
    let no_evidence_left = pod.is_some() || world.pod == Seen::Absent;
    // Held by a build that could read its spec, and never recorded: there is nothing to lose.
    let unrecorded = world.object.unrecorded && pod.is_none();
    let released = by_person || unrecorded || (world.namespace_terminating && pod.is_none());
    let asked = world.object.deleting() && world.object.holds_record();
    (asked && no_evidence_left && released).then_some(Write::ReleaseBox)
}
