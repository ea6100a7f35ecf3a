//! What must hold of every decision and every write, whatever happens around them.

use boxes_crds::{
    ABANDON_OUTPUT_ANNOTATION, BoxStatus, CONFIRM_STOPPED_ANNOTATION, FORCE_STOP_ANNOTATION,
    OutputState, OutputStatus, State,
};
use boxes_lifecycle::{BoxView, Decision, PodView, Record, World, Write, decide};

use super::api::Cluster;
use super::collector::Collector;
use super::command::Wait;
use super::kubelet::{Kubelet, Runtime};

/// What really happened on the node.
#[derive(Clone, Copy)]
pub(crate) struct Truth<'a> {
    pub kubelet: &'a Kubelet,
    pub collector: &'a Collector,
}

/// A proposed status, once written, is all there is to say at that moment.
pub(crate) fn decision(world: &World, decision: &Decision) {
    let Some(status) = &decision.status else {
        return;
    };
    let (spec, _) = world.readable().expect("an unreadable Box gets no status");
    let mut after = world.clone();
    after.object = BoxView::read(
        world.object.metadata.clone(),
        serde_json::to_value(spec).unwrap(),
        Some(serde_json::to_value(status).unwrap()),
    );
    let again = decide(&after).status;
    // A stop that was just recorded may let the end of a box without a pod follow at once.
    let follows = status.stop.is_some() && status.run.is_none();
    assert!(
        again.is_none() || follows,
        "a status that was just written is written again:\n{status:#?}\n{again:#?}"
    );
}

/// Whether a write keeps the promises of the contract, by what the API server has acknowledged and
/// what really runs.
pub(crate) fn write(
    cluster: &Cluster,
    truth: Truth<'_>,
    world: &World,
    write: &Write,
    deadline_refused: bool,
) {
    let stored = cluster.object.as_ref();
    let view = stored.map_or_else(|| world.object.clone(), super::boxes::StoredBox::view);
    let Ok((_, record)) = &view.content else {
        let released = view.annotation(CONFIRM_STOPPED_ANNOTATION).is_some();
        assert!(
            released || cluster.namespace_terminating,
            "an unreadable Box is left alone: {write:?}"
        );
        return;
    };
    let forced = view.annotation(FORCE_STOP_ANNOTATION).is_some() && record.stop_requested();
    let fallback = deadline_refused && record.stop_requested();
    match write {
        Write::HoldBox | Write::DeleteBox => {}
        Write::CreatePod(pod) => {
            let never = record.status.run.is_none() && record.ending.is_none();
            let made = cluster.pod.is_none() && cluster.refuses_pods.is_none();
            assert!(never || !made, "a Box runs once: {pod:?}");
        }
        Write::LowerDeadline { uid, seconds, .. } => {
            assert_ours(cluster, uid);
            let stopping = record.stop_requested() || record.ending.is_some();
            let asked = stored.and_then(|stored| stored.spec.active_deadline_seconds);
            assert!(
                stopping || asked == Some(*seconds),
                "a stop is recorded before it is acted on"
            );
        }
        Write::DeletePod { uid, .. } => {
            assert_ours(cluster, uid);
            let unbound = world.pod.ours().is_some_and(|pod| pod.node.is_none());
            let recorded = record.ending.is_some();
            assert!(recorded || forced || fallback || (unbound && record.stop_requested()));
        }
        Write::ReleasePod { uid, .. } => {
            assert_ours(cluster, uid);
            assert!(
                record.ending.is_some(),
                "evidence goes after it is recorded"
            );
            assert_stopped(cluster, truth.kubelet, &view, uid);
            assert_output_let_go(cluster, truth.collector, &view, record);
        }
        Write::ReleaseBox => {
            assert!(our_pod(cluster, &view).is_none(), "a Box outlives its pod");
            assert!(record.status.run.is_none() || record.ending.is_some());
        }
    }
}

/// A foreign pod is never named in a write.
fn assert_ours(cluster: &Cluster, uid: &str) {
    let owned = cluster.pod.as_ref().is_none_or(|pod| {
        pod.metadata.uid.as_deref() != Some(uid) || pod.metadata.owner_references.is_some()
    });
    assert!(owned, "pod {uid} is not of this Box");
}

/// What is released does not run, unless its node is given up.
fn assert_stopped(cluster: &Cluster, kubelet: &Kubelet, view: &BoxView, uid: &str) {
    let given_up = view.confirms_stopped(uid)
        || cluster
            .node
            .is_none_or(|node| node.out_of_service && !node.ready);
    let runs = kubelet.pod.as_ref().is_some_and(Runtime::is_running);
    assert!(given_up || !runs, "pod {uid} still runs");
}

/// A pod goes when what its collector said is recorded, or when nobody wants or can know it.
fn assert_output_let_go(cluster: &Cluster, collector: &Collector, view: &BoxView, record: &Record) {
    if view.deleting() || cluster.namespace_terminating {
        return;
    }
    let Some(pod) = our_pod(cluster, view) else {
        return;
    };
    match &record.status.output {
        None => assert!(!pod.holds_output(), "its output was never looked at"),
        Some(output) => {
            assert!(is_final(output), "its output is not saved: {output:?}");
            if collector.said.is_none() && output.state == "Unavailable" {
                let abandoned = view.annotation(ABANDON_OUTPUT_ANNOTATION) == Some(pod.uid());
                let confirmed = view.confirms_stopped(pod.uid());
                let lost = cluster
                    .node
                    .is_none_or(|node| node.out_of_service && !node.ready);
                let stripped = !pod.holds_output();
                assert!(
                    abandoned || confirmed || lost || stripped || collector.node_was_lost,
                    "output is given up on a guess"
                );
            }
        }
    }
}

fn is_final(output: &OutputStatus) -> bool {
    OutputState::parse(&output.state).is_some_and(OutputState::is_final)
}

/// What is recorded of the output is what the collector said, and it never changes.
fn assert_output(collector: &Collector, old: &BoxStatus, next: &BoxStatus) {
    if let Some(had) = old.output.as_ref().filter(|had| is_final(had)) {
        assert_eq!(next.output.as_ref(), Some(had), "it never changes");
    }
    let Some(output) = &next.output else { return };
    let never_bound = next.run.as_ref().is_none_or(|run| run.node.is_none());
    if matches!(output.state.as_str(), "Saved" | "Partial") {
        let said = collector.said.as_ref() == Some(output);
        assert!(said || (never_bound && output.bytes == 0), "{next:#?}");
    }
    let noted = next.history.iter().any(|it| it.type_ == "OutputSaved");
    let saved = matches!(output.state.as_str(), "Saved" | "Partial");
    assert_eq!(noted, saved, "{next:#?}");
}

fn our_pod(cluster: &Cluster, view: &BoxView) -> Option<PodView> {
    let pod = PodView::from(cluster.pod.clone()?);
    (pod.owner_uid() == Some(view.uid())).then_some(pod)
}

/// Whether a status may follow the one that is stored.
pub(crate) fn status(cluster: &Cluster, truth: Truth<'_>, world: &World, next: &BoxStatus) {
    let Some(stored) = &cluster.object else {
        return;
    };
    if stored.metadata.resource_version != world.object.metadata.resource_version {
        return;
    }
    let old = stored.recorded();
    let raw = serde_json::to_value(next).unwrap();
    let record = Record::read(Some(raw.clone())).expect("we can read what we write");
    assert_ne!(stored.status.as_ref(), Some(&raw), "nothing changed");
    assert!(!(next.exit_code.is_some() && next.signal.is_some()));
    assert_eq!(record.ending.and_then(|ending| ending.fault()), None);
    assert!(
        rank(&old) <= rank(next),
        "a state never goes back: {old:?} {next:?}"
    );
    if old.reason.is_some() {
        assert_eq!(ending_of(&old), ending_of(next), "an ending never changes");
    }
    assert_output(truth.collector, &old, next);
    if let (Some(had), Some(has)) = (&old.run, &next.run) {
        assert_eq!(had.pod, has.pod, "a Box has one run");
    }
    assert!(
        old.stop.is_none() || wire(&old.stop) == wire(&next.stop),
        "a stop is irrevocable"
    );
    let kept = next.history.iter().take(old.history.len());
    assert!(
        kept.map(wire).eq(old.history.iter().map(wire)),
        "history only grows"
    );
    assert_transitions(&old, next);
    if next.evidence.as_deref() == Some("Observed") {
        assert_observed(truth.kubelet, next);
    }
}

/// What is called observed is what a supervisor reported, and the truth.
fn assert_observed(kubelet: &Kubelet, status: &BoxStatus) {
    let truth = kubelet.truth.expect("something ended");
    assert!(truth.told, "nobody reported: {status:#?}");
    let (code, signal) = match truth.wait {
        None => (Some(127), None),
        Some(Wait::Code(code)) => (Some(code), None),
        Some(Wait::Signal(number)) => (None, Some(number)),
    };
    let told = (status.exit_code, status.signal);
    match status.reason.as_deref() {
        Some("Timeout") => assert!(truth.stop_received, "{truth:?} {status:#?}"),
        Some("OOM") => assert!(signal == Some(9) && truth.oom_kills > 0, "{truth:?}"),
        Some("StartFailed") => assert_eq!((truth.wait, told.0), (None, code)),
        Some("Exit" | "Signal") => assert_eq!(told, (code, signal), "{truth:?}"),
        _ => {
            assert_eq!(told, (code, signal), "{truth:?}");
            assert!(truth.stop_received, "its own end comes first: {status:#?}");
        }
    }
}

fn wire<T: serde::Serialize>(value: T) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

/// Everything that belongs to an ending.
fn ending_of(status: &BoxStatus) -> serde_json::Value {
    let ended_at = status.run.as_ref().and_then(|run| run.ended_at.clone());
    wire((
        (
            &status.state,
            &status.reason,
            status.exit_code,
            status.signal,
        ),
        (&status.evidence, &status.message, ended_at),
    ))
}

fn assert_transitions(old: &BoxStatus, next: &BoxStatus) {
    for has in &next.conditions {
        let had = old.conditions.iter().find(|had| had.type_ == has.type_);
        if let Some(had) = had.filter(|had| had.status == has.status) {
            assert_eq!(had.last_transition_time, has.last_transition_time);
        }
        assert!(!has.reason.is_empty());
    }
}

fn rank(status: &BoxStatus) -> u8 {
    match status.state.as_deref().and_then(State::parse) {
        None => 0,
        Some(State::Pending) => 1,
        Some(State::Materializing) => 2,
        Some(State::Running) => 3,
        Some(State::Stopped | State::Exited) => 4,
    }
}
