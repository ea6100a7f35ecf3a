//! The next status of a Box: a function of the world.

use boxes_crds::{
    BoxSpec, BoxStatus, HistoryType, OutputState, OutputStatus, PodReference, Run, State, Stop,
    StopCause, condition,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::Value;

use crate::conditions;
use crate::ending::{Verdict, verdict};
use crate::history::{data, note};
use crate::output;
use crate::pod_view::{PodView, RunState};
use crate::record::Record;
use crate::wording::waits_for;
use crate::world::{Refusal, Seen, World};

/// How long a box stays in `Pending` or `Materializing` before that is written: a state that is
/// left within a second costs no write. The times it is measured from are whole seconds, so this is
/// one to two seconds.
const SETTLED: SignedDuration = SignedDuration::from_secs(2);

/// A status to write, or when to think about it again.
#[derive(Debug, PartialEq)]
pub(crate) enum Proposal {
    /// The recorded status says it all.
    Same,
    /// It differs, and that can wait for so long.
    Later(SignedDuration),
    /// It differs.
    Write(Box<BoxStatus>),
}

/// The next status.
pub(crate) fn propose(world: &World, spec: &BoxSpec, record: &Record) -> Proposal {
    if nothing_to_record(world, record) {
        return Proposal::Same;
    }
    let mut status = record.status.clone();
    status
        .conditions
        .retain(|known| OWN.contains(&known.type_.as_str()));
    status.observed_generation = world.object.metadata.generation;
    if record.ending.is_none() {
        observe_pod(&mut status, world);
        match verdict(world) {
            Some(verdict) => end(&mut status, world, &verdict),
            None => go_on(&mut status, world, spec, record),
        }
    }
    status.output = output::next(&status, world, record);
    conditions::set(&mut status, world, spec, record);
    note_output(&mut status, world.now);
    note_clean_up(&mut status, world.now);
    weigh(world, record, status)
}

/// The condition types that are ours.
const OWN: [&str; 6] = [
    condition::ACCEPTED,
    condition::ENDED,
    condition::OUTPUT_SAVED,
    condition::CLEANED_UP,
    condition::RECONCILING,
    condition::STALLED,
];

/// A Box that is deleted before it had a pod just goes, and an ended one that is cleaned up and
/// deleted needs no last word.
fn nothing_to_record(world: &World, record: &Record) -> bool {
    let without_pod = world.pod.ours().is_none();
    let never_ran = record.status.run.is_none();
    world.object.deleting() && without_pod && (never_ran || record.ending.is_some())
}

/// Copies what the pod shows into `status.run`.
fn observe_pod(status: &mut BoxStatus, world: &World) {
    let Seen::Ours(pod) = &world.pod else {
        return;
    };
    let scheduled = pod
        .true_condition("PodScheduled")
        .and_then(|known| known.since);
    let run = status.run.get_or_insert_with(|| Run {
        number: 1,
        pod: PodReference {
            name: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
        },
        ..Run::default()
    });
    run.node = run.node.take().or_else(|| pod.node.clone());
    run.scheduled_at = run.scheduled_at.take().or_else(|| scheduled.map(Time));
    run.started_at = run.started_at.take().or_else(|| pod.started_at().map(Time));
    let (scheduled, started, node) = (
        run.scheduled_at.clone(),
        run.started_at.clone(),
        run.node.clone(),
    );

    let created = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(world.now, |time| time.0);
    let name = Some(Value::from(pod.name()));
    note(status, HistoryType::Created, created, data([("pod", name)]));
    if let Some(Time(at)) = scheduled {
        note(
            status,
            HistoryType::Scheduled,
            at,
            data([("node", node.map(Value::from))]),
        );
    }
    if let Some(Time(at)) = started {
        note(status, HistoryType::Started, at, data([]));
    }
    if let Some(at) = oom_kill(world, pod) {
        note(status, HistoryType::OOMKilled, at, data([]));
    }
}

/// When the container ended in which the kernel killed a process, if it did.
fn oom_kill(world: &World, pod: &PodView) -> Option<Timestamp> {
    match &pod.container.as_ref()?.state {
        RunState::Terminated {
            reason, finished, ..
        } if reason.as_deref() == Some("OOMKilled") => Some(finished.unwrap_or(world.now)),
        RunState::Terminated { .. } | RunState::Running { .. } | RunState::Waiting { .. } => None,
    }
}

/// Writes the ending, once and for ever.
fn end(status: &mut BoxStatus, world: &World, verdict: &Verdict) {
    let ending = verdict.ending;
    let ended_at = verdict.ended_at.unwrap_or(world.now);
    status.state = Some(ending.reason.state().to_string());
    status.reason = Some(ending.reason.to_string());
    status.exit_code = ending.exit_code;
    status.signal = ending.signal;
    status.evidence = Some(ending.evidence.to_string());
    status.message = Some(verdict.message.clone());
    if let Some(run) = &mut status.run {
        run.ended_at = Some(Time(ended_at));
        run.started_at = verdict.started_at.map(Time).or(run.started_at.take());
    }
    let killed = verdict.report.as_ref().ok().and_then(|it| it.oom_kills);
    if killed.is_some_and(|kills| kills > 0) {
        note(status, HistoryType::OOMKilled, ended_at, data([]));
    }
    let why_not = verdict.report.as_ref().err();
    let unreported = why_not.and_then(|why| why.as_str());
    let facts = data([
        ("reason", Some(Value::from(ending.reason.as_str()))),
        ("exitCode", ending.exit_code.map(Value::from)),
        ("signal", ending.signal.map(Value::from)),
        ("report", unreported.map(Value::from)),
    ]);
    note(status, HistoryType::Exited, ended_at, facts);
}

/// The box has not ended: its state, and a stop that is to be recorded before it is acted on.
fn go_on(status: &mut BoxStatus, world: &World, spec: &BoxSpec, record: &Record) {
    if let Some(by) = intended_stop(world, spec, record) {
        status.stop = Some(Stop {
            requested_at: Time(world.now),
            by: by.to_string(),
        });
        let by = Some(Value::from(by.as_str()));
        note(
            status,
            HistoryType::StopRequested,
            world.now,
            data([("by", by)]),
        );
    }
    let state = progress(world.pod.ours(), status, record);
    status.state = Some(state.to_string());
    status.message = message(world, spec, record, state);
}

/// What asks for a stop that is not recorded yet. What was created stopped, or has ended already,
/// is not stopped.
pub(crate) fn intended_stop(world: &World, spec: &BoxSpec, record: &Record) -> Option<StopCause> {
    if record.stop_requested() || record.ending.is_some() {
        return None;
    }
    match &world.pod {
        Seen::Ours(pod) if pod.phase.is_terminal() => None,
        Seen::Ours(pod) => stop_of_pod(world, spec, record, pod),
        Seen::Absent | Seen::Foreign => {
            let asked = stopped_before_its_pod(world, spec, record);
            asked.then_some(StopCause::Spec)
        }
        Seen::NotSeen => None,
    }
}

/// Whether a box was asked to run and then, before it had a pod, asked not to.
pub(crate) fn stopped_before_its_pod(world: &World, spec: &BoxSpec, record: &Record) -> bool {
    let waiting = record.status.run.is_none() && !world.object.deleting();
    waiting && spec.stopped == Some(true) && conditions::asked_to_run(record)
}

fn stop_of_pod(world: &World, spec: &BoxSpec, record: &Record, pod: &PodView) -> Option<StopCause> {
    if world.object.deleting() {
        return Some(StopCause::Delete);
    }
    let forced = world.object.annotation(boxes_crds::FORCE_STOP_ANNOTATION) == Some(pod.uid());
    if spec.stopped == Some(true) || forced {
        return Some(StopCause::Spec);
    }
    let due = start_deadline(spec, record, pod)?;
    (world.now >= due).then_some(StopCause::StartDeadline)
}

/// When the command must have started, while it has not. Counted from the pod's creation: a Box
/// that was created stopped has not been asked to run before.
pub(crate) fn start_deadline(spec: &BoxSpec, record: &Record, pod: &PodView) -> Option<Timestamp> {
    let seconds = spec.start_deadline_seconds?;
    if record.started() || pod.started_at().is_some() || pod.phase.is_terminal() {
        return None;
    }
    let created = pod.metadata.creation_timestamp.as_ref()?.0;
    created.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// The state of a box that has not ended. It never goes back: a kubelet that restarts may say less
/// than it said before.
fn progress(pod: Option<&PodView>, status: &BoxStatus, record: &Record) -> State {
    let started = status
        .run
        .as_ref()
        .is_some_and(|run| run.started_at.is_some());
    let bound = status.run.as_ref().is_some_and(|run| run.node.is_some());
    let runs = pod
        .and_then(|pod| pod.container.as_ref())
        .is_some_and(|container| matches!(container.state, RunState::Running { .. }));
    if started || runs || record.state == Some(State::Running) {
        State::Running
    } else if bound {
        State::Materializing
    } else {
        State::Pending
    }
}

/// What every container waits for on its way; not worth a write each time it changes.
const ORDINARY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// One sentence about a box that has not ended.
fn message(world: &World, spec: &BoxSpec, record: &Record, state: State) -> Option<String> {
    match (&world.pod, state) {
        (Seen::Ours(pod), State::Pending) => pod
            .condition("PodScheduled")
            .filter(|known| !known.is_true)
            .and_then(|known| known.message.clone()),
        (Seen::Ours(pod), State::Materializing) => {
            Some(waits_for(pod).trim_start_matches("; ").to_owned())
                .filter(|text| !text.is_empty() && !ORDINARY.contains(&text.as_str()))
        }
        (Seen::Ours(_), State::Running | State::Stopped | State::Exited) => None,
        (Seen::Foreign, _) => {
            Some("another's pod has the name that this box's pod needs".to_owned())
        }
        (Seen::NotSeen | Seen::Absent, _)
            if record.status.run.is_some() || conditions::still_forbidden(world, record) =>
        {
            record.status.message.clone()
        }
        (Seen::NotSeen | Seen::Absent, _) if spec.stopped == Some(true) => {
            Some("created stopped: waiting for spec.stopped to be set to false".to_owned())
        }
        (Seen::NotSeen | Seen::Absent, _) => match &world.refusal {
            Some(Refusal::Forbidden { message, .. } | Refusal::Invalid { message }) => {
                Some(message.clone())
            }
            Some(Refusal::NamespaceTerminating) => {
                Some("the namespace is being deleted: nothing is created in it".to_owned())
            }
            None => None,
        },
    }
}

fn note_output(status: &mut BoxStatus, now: Timestamp) {
    let saved = |output: &&OutputStatus| {
        let state = OutputState::parse(&output.state);
        matches!(state, Some(OutputState::Saved | OutputState::Partial))
    };
    if let Some(output) = status.output.as_ref().filter(saved) {
        let facts = data([
            ("state", Some(Value::from(output.state.as_str()))),
            ("bytes", Some(Value::from(output.bytes))),
        ]);
        note(status, HistoryType::OutputSaved, now, facts);
    }
}

fn note_clean_up(status: &mut BoxStatus, now: Timestamp) {
    let done = status
        .conditions
        .iter()
        .any(|known| known.type_ == condition::CLEANED_UP && known.status == "True");
    if done {
        note(status, HistoryType::CleanedUp, now, data([]));
    }
}

/// Nothing is written when nothing changed, and what may still pass by itself can wait a moment.
fn weigh(world: &World, record: &Record, status: BoxStatus) -> Proposal {
    let mut recorded = record.status.clone();
    recorded
        .conditions
        .retain(|known| OWN.contains(&known.type_.as_str()));
    if status == recorded || as_written(&status) == as_written(&recorded) {
        return Proposal::Same;
    }
    match settles_in(world, &status) {
        Some(wait) => Proposal::Later(wait),
        None => Proposal::Write(Box::new(status)),
    }
}

/// Times are written as whole seconds: what differs below that is the same.
fn as_written(status: &BoxStatus) -> Option<Vec<u8>> {
    serde_json::to_vec(status).ok()
}

/// How long a box without a word from the scheduler stays unwritten: a scheduler with much to do is
/// no news either, and what it cannot place it says. As long where many boxes change at once: there
/// the writes of their endings come first.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// How long the status can wait: only on the way to Running, and only while all is well.
fn settles_in(world: &World, status: &BoxStatus) -> Option<SignedDuration> {
    let accepted = status
        .conditions
        .iter()
        .all(|known| known.type_ != condition::ACCEPTED || known.status == "True");
    if status.stop.is_some() || !accepted {
        return None;
    }
    let (since, unplaced) = under_way_since(world, status)?;
    let patient = unplaced || world.crowded;
    let settled = if patient { PATIENCE } else { SETTLED };
    // The clock of the API server may be ahead of ours.
    let wait = (settled - world.now.duration_since(since)).min(settled);
    // A crowd may be gone in a moment.
    let look = if world.crowded { SETTLED } else { wait };
    wait.is_positive().then_some(wait.min(look))
}

/// Since when a box is on the way to Running as it now is, and whether it only waits for a word from
/// the scheduler.
fn under_way_since(world: &World, status: &BoxStatus) -> Option<(Timestamp, bool)> {
    let created = |metadata: &ObjectMeta| Some(metadata.creation_timestamp.as_ref()?.0);
    let of_box = created(&world.object.metadata);
    let run = status.run.as_ref();
    match status.state.as_deref().and_then(State::parse)? {
        State::Pending => {
            let unplaced = world.pod.ours().filter(|_| status.message.is_none());
            let of_pod = unplaced.and_then(|pod| created(&pod.metadata));
            Some((of_pod.or(of_box)?, unplaced.is_some()))
        }
        State::Materializing => {
            let scheduled = run.and_then(|run| run.scheduled_at.as_ref());
            Some((scheduled.map(|time| time.0).or(of_box)?, false))
        }
        State::Running | State::Stopped | State::Exited => None,
    }
}
