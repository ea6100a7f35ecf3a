//! When a pod is confirmed to have stopped (contract §5.4), and what is then written.

use boxes_lifecycle::{Confirmation, NodeView, Phase, confirmation};
use rstest::rstest;

use crate::fixtures::{
    ABox, APod, Decides, a_bound_pod, a_box, a_materializing_box, a_running_box, a_running_pod,
    an_ended_box, an_ended_pod, an_unbound_pod, at, told,
};

const SILENT: NodeView = NodeView::Present {
    ready: false,
    out_of_service: false,
};

#[rstest]
#[case::unbound(a_box(), an_unbound_pod(), Confirmation::No)]
#[case::unbound_and_deleting(a_box(), an_unbound_pod().deleted_at(50), Confirmation::NeverBound)]
#[case::ended(a_running_box(), an_ended_pod(0, "Completed"), Confirmation::Stopped)]
#[case::ended_in_a_pod_that_goes_on(a_running_box(), an_ended_pod(0, "Completed").beside_a_sidecar(), Confirmation::No)]
#[case::failed_while_a_container_runs(a_running_box(), a_running_pod().failed_by("Evicted"), Confirmation::No)]
#[case::running(a_running_box(), a_running_pod(), Confirmation::No)]
#[case::phase_unknown(a_running_box(), an_ended_pod(0, "Completed").in_phase(Phase::Unknown), Confirmation::No)]
#[case::deleting_and_running(a_running_box(), a_running_pod().deleted_at(50), Confirmation::No)]
#[case::never_started(a_materializing_box(), a_bound_pod().failed_by("DeadlineExceeded"), Confirmation::Stopped)]
#[case::status_unknown(
    a_running_box(),
    an_ended_pod(137, "ContainerStatusUnknown"),
    Confirmation::Stopped
)]
#[case::missing(a_running_box(), a_running_pod().without_container().failed_by("NodeAffinity"), Confirmation::MissingUntil(at(160)))]
#[case::collected(a_running_box(), a_running_pod().without_container().failed_by("").disrupted_at(50, "DeletionByPodGC"), Confirmation::No)]
#[case::collected_and_reported(a_running_box(), an_ended_pod(0, "Completed").disrupted_at(50, "DeletionByPodGC"), Confirmation::Stopped)]
#[case::never_acknowledged(a_materializing_box(), not_acknowledged(), Confirmation::No)]
fn by_the_kubelet(#[case] object: ABox, #[case] pod: APod, #[case] expected: Confirmation) {
    let world = object.with(pod.clone());
    assert_eq!(confirmation(&world, &pod.0), expected);
}

fn not_acknowledged() -> APod {
    let mut pod = a_bound_pod().failed_by("");
    pod.0.start_time = None;
    pod
}

#[test]
fn what_is_missing_counts_as_ended_after_a_minute() {
    let pod = || {
        a_running_pod()
            .without_container()
            .failed_by("NodeAffinity")
    };
    let mut world = a_running_box().with(pod());
    assert_eq!(told(&world.status()), "goes on");
    assert_eq!(world.decided().wake.unwrap().as_secs(), 60);
    world.missing_since = Some(at(100));
    assert_eq!(told(&world.clone().after(59).status()), "goes on");
    assert_eq!(
        told(&world.after(60).status()),
        "Stopped PodLost - - Inferred"
    );
}

#[test]
fn a_stop_asked_of_what_had_ended_is_no_cause() {
    let pod = a_running_pod()
        .without_container()
        .failed_by("NodeAffinity");
    let object = a_running_box().asks(serde_json::json!({"stopped": true}));
    let mut world = object.with(pod);
    world.missing_since = Some(at(100));
    assert_eq!(world.status().stop, None);
    assert_eq!(
        told(&world.after(60).status()),
        "Stopped PodLost - - Inferred"
    );
}

/// Evidence is released, and the pod deleted, only when the stop is confirmed and the end recorded.
#[rstest]
#[case::not_recorded(a_running_box(), an_ended_pod(3, "Error"), None)]
#[case::recorded(an_ended_box(), an_ended_pod(3, "Error"), Some("release_pod"))]
#[case::released(an_ended_box(), an_ended_pod(3, "Error").held_by(&[]), Some("delete_pod"))]
#[case::deleted(an_ended_box(), an_ended_pod(3, "Error").held_by(&["example.com/x"]).deleted_at(60), None)]
#[case::a_sidecar_runs(an_ended_box(), an_ended_pod(3, "Error").beside_a_sidecar(), Some("lower_deadline"))]
#[case::a_sidecar_is_being_stopped(an_ended_box(), an_ended_pod(3, "Error").beside_a_sidecar().with_deadline(1), None)]
#[case::the_pod_is_about_to_end(an_ended_box(), an_ended_pod(3, "Error").in_phase(Phase::Running), None)]
fn clean_up(#[case] object: ABox, #[case] pod: APod, #[case] expected: Option<&str>) {
    assert_eq!(object.with(pod).write(), expected);
}

#[rstest]
#[case::asked_and_not_recorded(a_running_box().asks(serde_json::json!({"stopped": true})), a_running_pod(), None)]
#[case::recorded(a_running_box().stopped_at(90, "Spec"), a_running_pod(), Some("lower_deadline"))]
#[case::lowered(a_running_box().stopped_at(90, "Spec"), a_running_pod().with_deadline(1), None)]
#[case::deleting_already(a_running_box().stopped_at(90, "Spec"), a_running_pod().deleted_at(80), None)]
#[case::ended_and_not_recorded(a_running_box().stopped_at(90, "Spec"), an_ended_pod(3, "Error"), None)]
#[case::unbound(a_box().stopped_at(90, "Spec"), an_unbound_pod(), Some("delete_pod"))]
#[case::by_force(a_running_box().stopped_at(90, "Spec").annotated("boxes.run/force-stop", "pod-1"), a_running_pod(), Some("delete_pod"))]
#[case::by_force_too_late(a_running_box().stopped_at(90, "Spec").annotated("boxes.run/force-stop", "pod-1"), a_running_pod().with_deadline(1), None)]
#[case::by_force_of_another(a_running_box().stopped_at(90, "Spec").annotated("boxes.run/force-stop", "pod-2"), a_running_pod(), Some("lower_deadline"))]
#[case::by_force_not_recorded(a_running_box().annotated("boxes.run/force-stop", "pod-1"), a_running_pod(), None)]
fn a_stop(#[case] object: ABox, #[case] pod: APod, #[case] expected: Option<&str>) {
    assert_eq!(object.with(pod).write(), expected);
}

#[test]
fn a_deadline_that_cannot_be_lowered_becomes_a_deletion() {
    let mut world = a_running_box().stopped_at(90, "Spec").with(a_running_pod());
    world.deadline_refused = true;
    assert_eq!(world.write(), Some("delete_pod"));
}

#[rstest]
#[case::deleted_box(a_running_box().deleted(), "Delete")]
#[case::stopped_box(a_running_box().asks(serde_json::json!({"stopped": true})), "Spec")]
#[case::force(a_running_box().annotated("boxes.run/force-stop", "pod-1"), "Spec")]
#[case::too_late(a_materializing_box().asks(serde_json::json!({"startDeadlineSeconds": 60})), "StartDeadline")]
fn an_intent_is_recorded(#[case] object: ABox, #[case] by: &str) {
    let started = object.status["run"]["startedAt"].is_string();
    let pod = if started {
        a_running_pod()
    } else {
        a_bound_pod()
    };
    let stop = object.with(pod).status().stop.unwrap();
    assert_eq!((stop.by.as_str(), stop.requested_at.0), (by, at(100)));
}

#[test]
fn a_pod_of_a_lost_node_is_forced_away_once() {
    let lost = NodeView::AbsentSince { since: at(0) };
    let pod = a_running_pod().held_by(&["example.com/x"]).deleted_at(60);
    assert_eq!(
        an_ended_box().with(pod.clone()).on(lost).write(),
        Some("delete_pod")
    );
    let mut forced = pod;
    forced.0.metadata.deletion_grace_period_seconds = Some(0);
    assert_eq!(an_ended_box().with(forced).on(lost).write(), None);
}

#[rstest]
#[case::stopping(a_running_box().stopped_at(90, "Spec"), a_running_pod().with_deadline(1))]
#[case::ended_beside_a_sidecar(an_ended_box(), an_ended_pod(3, "Error").beside_a_sidecar().with_deadline(1))]
#[case::deleted_by_someone(a_running_box(), a_running_pod().deleted_at(90))]
fn what_waits_for_a_kubelet_looks_again(#[case] object: ABox, #[case] pod: APod) {
    let world = object.with(pod).on(SILENT);
    assert!(boxes_lifecycle::needs_node(&world).is_some());
    assert_eq!(world.decided().wake.unwrap().as_secs(), 15);
}
