//! How a box ended: the table of the contract (§3). An unknown code is absent, never invented.

use boxes_crds::{BoxSpec, Evidence, Reason, condition};
use jiff::{SignedDuration, Timestamp};

use crate::cause::{Until, cause, deadline, deleted_by_pod_gc};
use crate::confirm::{Confirmation, confirmation};
use crate::pod_view::PodView;
use crate::record::Record;
use crate::report::{NoReport, Report};
use crate::terminated::terminated;
use crate::wording::waits_for;
use crate::world::{Refusal, Seen, World};

/// The signals of Linux.
pub(crate) const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// What a process can return. Another number is no code, and is unknown like one.
pub(crate) const CODES: std::ops::RangeInclusive<i32> = 0..=255;

/// A recorded ending. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why.
    pub reason: Reason,
    /// The status that the command returned with, if it did and it is known.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How it is known.
    pub evidence: Evidence,
}

impl Ending {
    /// Why no box can have this ending, if so.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let Self {
            reason,
            exit_code,
            signal,
            evidence: _,
        } = self;
        if exit_code.is_some() && signal.is_some() {
            return Some("both exitCode and signal");
        }
        if exit_code.is_some_and(|code| !CODES.contains(&code)) {
            return Some("an exitCode out of 0 to 255");
        }
        if signal.is_some_and(|number| !SIGNALS.contains(&number)) {
            return Some("a signal out of 1 to 64");
        }
        let none = exit_code.is_none() && signal.is_none();
        let fits = match reason {
            Reason::Exit => exit_code.is_some(),
            Reason::Signal => signal.is_some(),
            Reason::OOM => *exit_code == Some(137),
            Reason::Timeout | Reason::NodeLost | Reason::PodLost => none,
            Reason::StartFailed => none || matches!(exit_code, Some(126 | 127)),
            Reason::Stopped | Reason::Evicted | Reason::Preempted | Reason::PodDeleted => true,
        };
        (!fits).then_some("this reason with this exitCode and signal")
    }

    pub(crate) const fn without_status(reason: Reason, evidence: Evidence) -> Self {
        Self {
            reason,
            exit_code: None,
            signal: None,
            evidence,
        }
    }
}

/// An ending as it is first established.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub ending: Ending,
    /// When the command started, if the supervisor says.
    pub started_at: Option<Timestamp>,
    /// When the command ended, if anyone knows.
    pub ended_at: Option<Timestamp>,
    pub message: String,
    /// What the supervisor reported.
    pub report: Result<Report, NoReport>,
}

impl Verdict {
    /// One that no supervisor had a word in.
    fn unreported(ending: Ending, message: String) -> Self {
        Self {
            ending,
            started_at: None,
            ended_at: None,
            message,
            report: Err(NoReport::Unsupervised),
        }
    }
}

/// The ending that the world shows, if the box has ended. In order of precedence: the list is the
/// specification.
pub(crate) fn verdict(world: &World) -> Option<Verdict> {
    let (spec, record) = world.readable()?;
    match &world.pod {
        Seen::Ours(pod) => [terminated, pod_ended_without_status, never_bound, node_lost]
            .into_iter()
            .find_map(|rule| rule(world, spec, record, pod)),
        Seen::Absent => pod_lost(record).or_else(|| without_pod(world, spec, record)),
        Seen::Foreign => without_pod(world, spec, record),
        // A pod that the cache does not show may be there.
        Seen::NotSeen => None,
    }
}

/// The kubelet gives no wait status of the command, and its pod is confirmed to have stopped, or is
/// held up by other containers after the command ended.
fn pod_ended_without_status(
    world: &World,
    spec: &BoxSpec,
    record: &Record,
    pod: &PodView,
) -> Option<Verdict> {
    let held_up = pod.has_ended() && pod.others_alive;
    if confirmation(world, pod) != Confirmation::Stopped && !held_up {
        return None;
    }
    let cause = cause(world, spec, record, pod, Until::Ever);
    if record.started() || may_have_run(pod) {
        return Some(ended_unseen(cause));
    }
    Some(never_started(record, cause, spec, pod))
}

/// Whether the container existed. The kubelet also gives an unknown end to one that it never made.
fn may_have_run(pod: &PodView) -> bool {
    let container = pod.container.as_ref();
    container.is_some_and(|container| container.was_made) || pod.started_at().is_some()
}

fn ended_unseen(cause: Option<Reason>) -> Verdict {
    Verdict::unreported(
        Ending::without_status(cause.unwrap_or(Reason::PodLost), Evidence::Inferred),
        "the command's container is gone and the kubelet did not see how it ended: its exit code is \
         unknown"
            .to_owned(),
    )
}

/// The command never started: a deadline, a failed init container, a kubelet that rejected the pod.
fn never_started(record: &Record, cause: Option<Reason>, spec: &BoxSpec, pod: &PodView) -> Verdict {
    let timeout = cause == Some(Reason::Timeout);
    let message = if timeout {
        let seconds = deadline(spec, record, pod).unwrap_or_default();
        format!(
            "activeDeadlineSeconds ({seconds}) passed before the command started{}",
            waits_for(pod)
        )
    } else if stopped_by_start_deadline(record) {
        stop_message(record, spec, "")
    } else if let Some(failure) = &pod.init_failure {
        failure.clone()
    } else {
        let reason = pod.reason.as_deref().unwrap_or("no reason given");
        let said = pod.message.as_deref().unwrap_or_default();
        format!("the command was never started: {reason} {said}")
            .trim_end()
            .to_owned()
    };
    Verdict::unreported(not_started(record, cause), message)
}

/// A command that never started: by what stopped it, if something did. A deadline, its own or that
/// for the start, is no stop of something that ran: the start failed.
pub(crate) fn not_started(record: &Record, cause: Option<Reason>) -> Ending {
    match cause {
        None | Some(Reason::Timeout) => {
            Ending::without_status(Reason::StartFailed, Evidence::Derived)
        }
        Some(Reason::Stopped) if stopped_by_start_deadline(record) => {
            Ending::without_status(Reason::StartFailed, Evidence::Derived)
        }
        Some(reason) => Ending::without_status(reason, Evidence::Inferred),
    }
}

/// The pod was deleted before it was bound to a node: it never ran and never will.
fn never_bound(world: &World, spec: &BoxSpec, record: &Record, pod: &PodView) -> Option<Verdict> {
    if confirmation(world, pod) != Confirmation::NeverBound {
        return None;
    }
    let cause = cause(world, spec, record, pod, Until::Ever).unwrap_or(Reason::PodDeleted);
    let unbound = "the pod was deleted before it was bound to a node";
    Some(Verdict::unreported(
        not_started(record, Some(cause)),
        stop_message(record, spec, unbound),
    ))
}

fn stopped_by_start_deadline(record: &Record) -> bool {
    let by = record.status.stop.as_ref().map(|stop| stop.by.as_str());
    by == Some(boxes_crds::StopCause::StartDeadline.as_str())
}

fn stop_message(record: &Record, spec: &BoxSpec, otherwise: &str) -> String {
    if stopped_by_start_deadline(record) {
        let seconds = spec.start_deadline_seconds.unwrap_or_default();
        let last = record.status.message.as_deref().unwrap_or_default();
        return format!(
            "startDeadlineSeconds ({seconds}) passed before the command started; {last}"
        );
    }
    otherwise.to_owned()
}

/// The node is positively gone, and no kubelet will ever report.
fn node_lost(world: &World, _: &BoxSpec, record: &Record, pod: &PodView) -> Option<Verdict> {
    if confirmation(world, pod) != Confirmation::NodeGone {
        return None;
    }
    let node = pod.node.as_deref().unwrap_or_default();
    let by = if world.object.confirms_stopped(pod.uid()) {
        "a person confirmed that the pod is stopped"
    } else if deleted_by_pod_gc(pod) {
        "the cluster collected the pods of the node"
    } else {
        "the node is gone"
    };
    let ran = if record.started() {
        "how the command ended is unknown"
    } else {
        "the command may never have started"
    };
    Some(Verdict::unreported(
        Ending::without_status(Reason::NodeLost, Evidence::Inferred),
        format!("node {node} was lost ({by}); {ran}"),
    ))
}

/// The recorded pod is positively absent and nobody saw the end.
fn pod_lost(record: &Record) -> Option<Verdict> {
    let run = record.status.run.as_ref()?;
    let cause = if record.stop_requested() {
        Reason::Stopped
    } else {
        Reason::PodLost
    };
    let ending = if record.started() {
        Ending::without_status(cause, Evidence::Inferred)
    } else {
        not_started(record, Some(cause))
    };
    let message = format!(
        "pod {} ({}) is gone and its end was not seen: its finalizer was removed by someone",
        run.pod.name, run.pod.uid
    );
    Some(Verdict::unreported(ending, message))
}

/// No pod was ever made, and none will be.
fn without_pod(world: &World, spec: &BoxSpec, record: &Record) -> Option<Verdict> {
    if record.status.run.is_some() || world.object.deleting() {
        return None;
    }
    let ended = |reason, evidence, message: String| {
        Verdict::unreported(Ending::without_status(reason, evidence), message)
    };
    if record.stop_requested() {
        let message = "stopped on request before its pod was made".to_owned();
        return Some(ended(Reason::Stopped, Evidence::Inferred, message));
    }
    if spec.stopped == Some(true) {
        return None;
    }
    if let Some(Refusal::Invalid { message }) = &world.refusal {
        let message = format!("the API server refused the pod: {message}");
        return Some(ended(Reason::StartFailed, Evidence::Derived, message));
    }
    let over = refused_until(spec, record).is_some_and(|due| world.now >= due);
    over.then(|| {
        let seconds = spec.start_deadline_seconds.unwrap_or_default();
        let why = record.condition(condition::ACCEPTED);
        let why = why.map(|known| known.message.as_str()).unwrap_or_default();
        let message =
            format!("startDeadlineSeconds ({seconds}) passed before the command started; {why}");
        ended(Reason::StartFailed, Evidence::Derived, message)
    })
}

/// When a Box ends whose pod cannot be made: counted from the time that this was first recorded,
/// since a Box that was created stopped has not been asked to run before.
pub(crate) fn refused_until(spec: &BoxSpec, record: &Record) -> Option<Timestamp> {
    let seconds = SignedDuration::from_secs(spec.start_deadline_seconds?);
    let refused = record
        .condition(condition::ACCEPTED)
        .filter(|known| known.status == "False")?;
    if record.status.run.is_some() || record.ending.is_some() {
        return None;
    }
    refused.last_transition_time.0.checked_add(seconds).ok()
}
