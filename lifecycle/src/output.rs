//! What becomes of a box's output (contract §5.5 and §7): whether its pod still waits for it, and what
//! is recorded of it. The collector of the pod's node reads, saves and lets go; here is only judged
//! what it said, and when it is not waited for.

use boxes_crds::{
    ABANDON_OUTPUT_ANNOTATION, BoxStatus, OUTPUT_ANNOTATION, OutputState, OutputStatus,
};
use jiff::{SignedDuration, Timestamp};

use crate::confirm::{Confirmation, confirmation, node_gone};
use crate::pod_view::PodView;
use crate::record::Record;
use crate::world::{NodeView, Seen, World};

/// How long after the end a collector may take before it is said that the pod waits for it, or it is not
/// waited for because output was turned off: until then it is what always happens, and costs no write.
pub(crate) const OUTPUT_PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// The value that a new pod's annotation has: output is to come.
pub(crate) fn announced() -> String {
    // A struct of plain fields always serializes.
    serde_json::to_string(&in_state(OutputState::Pending, "")).unwrap_or_default()
}

/// The next `status.output`.
pub(crate) fn next(status: &BoxStatus, world: &World, record: &Record) -> Option<OutputStatus> {
    let recorded = record.status.output.as_ref();
    if recorded.is_some_and(is_final) {
        return recorded.cloned();
    }
    match &world.pod {
        Seen::Ours(pod) => of_pod(status, world, pod),
        Seen::Absent | Seen::Foreign => recorded.map(|_| {
            unavailable(
                "the pod went before its collector said what it saved; what reached the archive can \
                 be read",
            )
        }),
        Seen::NotSeen => recorded.cloned(),
    }
}

fn of_pod(status: &BoxStatus, world: &World, pod: &PodView) -> Option<OutputStatus> {
    let said = pod.annotation(OUTPUT_ANNOTATION);
    if !pod.holds_output() {
        return said.map(let_go);
    }
    if let Some(lost) = given_up(status, world, pod) {
        return Some(lost);
    }
    let began = status.reason.is_some()
        || status
            .run
            .as_ref()
            .is_some_and(|run| run.started_at.is_some());
    let state = if began {
        OutputState::Saving
    } else {
        OutputState::Pending
    };
    Some(in_state(state, ""))
}

/// What the collector said when it let go. A finalizer that somebody else took off says nothing.
fn let_go(said: &str) -> OutputStatus {
    let said = serde_json::from_str::<OutputStatus>(said).ok();
    said.filter(is_final).unwrap_or_else(|| {
        unavailable(
            "the finalizer boxes.run/output was removed by someone before the collector said what it \
             saved; what reached the archive can be read",
        )
    })
}

/// Why nobody will say what was saved, although the finalizer is there. Of a pod that may still run
/// nothing is given up.
fn given_up(status: &BoxStatus, world: &World, pod: &PodView) -> Option<OutputStatus> {
    if !has_stopped(world, pod) {
        return None;
    }
    let node = pod.node.as_deref().unwrap_or_default();
    if confirmation(world, pod) == Confirmation::NeverBound {
        return Some(in_state(OutputState::Saved, ""));
    }
    if world.object.annotation(ABANDON_OUTPUT_ANNOTATION) == Some(pod.uid()) {
        return Some(unavailable(
            "given up on request before the collector had saved it; what reached the archive can be \
             read",
        ));
    }
    if !world.saves_output && is_late(status, world.now) {
        return Some(unavailable(
            "the saving of output was turned off before the collector had saved it; what reached the \
             archive can be read",
        ));
    }
    let lost =
        confirmation(world, pod) == Confirmation::NodeGone || node_gone(world.now, world.node);
    lost.then(|| {
        unavailable(&format!(
            "node {node} was lost before its collector said what it saved; what reached the archive \
             can be read"
        ))
    })
}

fn has_stopped(world: &World, pod: &PodView) -> bool {
    confirmation(world, pod).is_stopped()
}

fn in_state(state: OutputState, message: &str) -> OutputStatus {
    OutputStatus {
        state: state.to_string(),
        bytes: 0,
        truncated: false,
        message: message.to_owned(),
    }
}

fn unavailable(why: &str) -> OutputStatus {
    OutputStatus {
        truncated: true,
        ..in_state(OutputState::Unavailable, why)
    }
}

/// Whether nothing more will be said of it.
pub(crate) fn is_final(output: &OutputStatus) -> bool {
    OutputState::parse(&output.state).is_some_and(OutputState::is_final)
}

/// Whether the pod may go as far as its output is concerned: it never had any to save, what was saved
/// is recorded, or nobody wants it any more.
pub(crate) fn is_settled(status: &BoxStatus, world: &World, pod: &PodView) -> bool {
    if world.object.deleting() || world.namespace_terminating {
        return true;
    }
    match &status.output {
        Some(output) => is_final(output),
        None => !pod.holds_output() && pod.annotation(OUTPUT_ANNOTATION).is_none(),
    }
}

/// Whether the pod is kept for its output alone, and nothing else.
pub(crate) fn is_awaited(status: &BoxStatus, world: &World, pod: &PodView) -> bool {
    status.reason.is_some()
        && pod.holds_output()
        && has_stopped(world, pod)
        && !is_settled(status, world, pod)
}

/// When it is worth saying that the pod waits for its output.
pub(crate) fn is_late_at(status: &BoxStatus) -> Option<Timestamp> {
    let ended = status.run.as_ref()?.ended_at.as_ref()?.0;
    ended.checked_add(OUTPUT_PATIENCE).ok()
}

/// Whether that time has come.
fn is_late(status: &BoxStatus, now: Timestamp) -> bool {
    is_late_at(status).is_none_or(|at| now >= at)
}

/// Whether the pod is kept for its output so long that a person may want to know.
pub(crate) fn is_missed(status: &BoxStatus, world: &World, pod: &PodView) -> bool {
    is_awaited(status, world, pod) && is_late(status, world.now)
}

/// What a person is told about a pod that waits for its output.
pub(crate) fn pending(world: &World, pod: &PodView) -> String {
    let node = pod.node.as_deref().unwrap_or_default();
    let also = match world.node {
        NodeView::Present { ready: false, .. } => ", which is not Ready,",
        NodeView::AbsentSince { .. } => ", which does not exist any more,",
        NodeView::Present { ready: true, .. } | NodeView::Unknown => "",
    };
    format!(
        "the collector on node {node}{also} has not saved the output yet, so pod {pod} is kept; if no \
         collector will run there, give the output up: kubectl annotate box {object} -n {namespace} \
         {key}={uid}",
        pod = pod.name(),
        object = world.object.name(),
        namespace = world.object.namespace(),
        key = ABANDON_OUTPUT_ANNOTATION,
        uid = pod.uid(),
    )
}
