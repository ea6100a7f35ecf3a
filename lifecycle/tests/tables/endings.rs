//! The table of endings (contract §3), row by row.

use boxes_lifecycle::{NodeView, Refusal, Seen, World};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{
    ABox, APod, Decides, a_bound_pod, a_box, a_materializing_box, a_running_box, a_running_pod,
    an_ended_pod, an_unbound_pod, at, told,
};

fn stopped() -> ABox {
    a_running_box().stopped_at(40, "Spec")
}

fn timed(seconds: i64) -> ABox {
    a_running_box().asks(json!({"activeDeadlineSeconds": seconds}))
}

fn overdue(pod: APod, seconds: i64) -> APod {
    pod.with_deadline(seconds).failed_by("DeadlineExceeded")
}

#[rstest]
#[case::exit_0(
    a_running_box(),
    an_ended_pod(0, "Completed"),
    "Exited Exit 0 - Derived"
)]
#[case::exit_3(a_running_box(), an_ended_pod(3, "Error"), "Exited Exit 3 - Derived")]
#[case::a_signal_that_only_the_kubelet_saw(
    a_running_box(),
    an_ended_pod(139, "Error"),
    "Exited Exit 139 - Derived"
)]
#[case::timeout(
    timed(30),
    overdue(an_ended_pod(143, "Error"), 30),
    "Exited Timeout - - Derived"
)]
#[case::timeout_with_a_handler(
    timed(30),
    overdue(an_ended_pod(0, "Completed"), 30),
    "Exited Timeout - - Derived"
)]
#[case::oom(
    a_running_box(),
    an_ended_pod(137, "OOMKilled"),
    "Exited OOM 137 - Derived"
)]
#[case::stopped_and_returned(
    stopped(),
    an_ended_pod(0, "Completed"),
    "Stopped Stopped 0 - Derived"
)]
#[case::stopped_and_returned_7(stopped(), an_ended_pod(7, "Error"), "Stopped Stopped 7 - Derived")]
#[case::stopped_by_term(stopped(), an_ended_pod(143, "Error"), "Stopped Stopped - 15 Derived")]
#[case::stopped_by_kill(stopped(), an_ended_pod(137, "Error"), "Stopped Stopped - 9 Derived")]
#[case::evicted(a_running_box(), an_ended_pod(143, "Error").failed_by("Evicted"), "Stopped Evicted - 15 Derived")]
#[case::node_shutdown(a_running_box(), an_ended_pod(0, "Completed").failed_by("Terminated"), "Stopped Evicted 0 - Derived")]
#[case::drained(a_running_box(), an_ended_pod(143, "Error").deleted_at(45).disrupted_at(45, "EvictionByEvictionAPI"), "Stopped Evicted - 15 Derived")]
#[case::tainted(a_running_box(), an_ended_pod(143, "Error").deleted_at(45).disrupted_at(45, "DeletionByTaintManager"), "Stopped Evicted - 15 Derived")]
#[case::preempted(a_running_box(), an_ended_pod(137, "Error").deleted_at(45).disrupted_at(45, "PreemptionByScheduler"), "Stopped Preempted - 9 Derived")]
#[case::preempted_by_the_kubelet(a_running_box(), an_ended_pod(2, "Error").failed_by("Preempting"), "Stopped Preempted 2 - Derived")]
#[case::pod_deleted(a_running_box(), an_ended_pod(9, "Error").deleted_at(45), "Stopped PodDeleted 9 - Derived")]
#[case::pod_deleted_and_killed(a_running_box(), an_ended_pod(137, "Error").deleted_at(45), "Stopped PodDeleted - 9 Derived")]
#[case::pod_deleted_before_a_node(a_box(), an_unbound_pod().deleted_at(45), "Stopped PodDeleted - - Inferred")]
#[case::stopped_before_a_node(a_box().stopped_at(40, "Spec"), an_unbound_pod().deleted_at(45), "Stopped Stopped - - Inferred")]
#[case::no_such_program(
    a_materializing_box(),
    an_ended_pod(128, "StartError"),
    "Stopped StartFailed - - Derived"
)]
#[case::rejected(a_materializing_box(), a_bound_pod().without_container().failed_by("OutOfcpu"), "Stopped StartFailed - - Derived")]
#[case::overdue_before_the_start(
    a_materializing_box(),
    overdue(a_bound_pod(), 30),
    "Stopped StartFailed - - Derived"
)]
#[case::stopped_before_the_start(a_materializing_box().stopped_at(40, "Spec"), overdue(a_bound_pod(), 1), "Stopped Stopped - - Inferred")]
fn a_pod_that_ended(#[case] object: ABox, #[case] pod: APod, #[case] expected: &str) {
    assert_eq!(told(&object.with(pod).status()), expected);
}

fn invalid(mut world: World) -> World {
    world.refusal = Some(Refusal::Invalid {
        message: "too big".to_owned(),
    });
    world
}

#[rstest]
#[case::node_absent_for_a_minute(a_running_box().with(a_running_pod()).on(NodeView::AbsentSince { since: at(40) }), "Stopped NodeLost - - Inferred")]
#[case::node_absent_for_less(a_running_box().with(a_running_pod()).on(NodeView::AbsentSince { since: at(41) }), "goes on")]
#[case::node_out_of_service(a_running_box().with(a_running_pod()).on(NodeView::Present { ready: false, out_of_service: true }), "Stopped NodeLost - - Inferred")]
#[case::node_out_of_service_but_ready(a_running_box().with(a_running_pod()).on(NodeView::Present { ready: true, out_of_service: true }), "goes on")]
#[case::node_not_ready(a_running_box().with(a_running_pod()).on(NodeView::Present { ready: false, out_of_service: false }), "goes on")]
#[case::confirmed_by_a_person(a_running_box().annotated("boxes.run/confirm-stopped", "pod-1").with(a_running_pod()), "Stopped NodeLost - - Inferred")]
#[case::confirmed_of_another_pod(a_running_box().annotated("boxes.run/confirm-stopped", "pod-2").with(a_running_pod()), "goes on")]
#[case::a_report_comes_first(a_running_box().with(an_ended_pod(3, "Error")).on(NodeView::AbsentSince { since: at(0) }), "Exited Exit 3 - Derived")]
#[case::collected_with_its_node(a_running_box().with(a_running_pod().failed_by("").deleted_at(60).disrupted_at(60, "DeletionByPodGC")).on(NodeView::AbsentSince { since: at(40) }), "Stopped NodeLost - - Inferred")]
#[case::pod_absent(a_running_box().with(Seen::Absent), "Stopped PodLost - - Inferred")]
#[case::pod_absent_after_a_stop(a_running_box().stopped_at(40, "Spec").with(Seen::Absent), "Stopped Stopped - - Inferred")]
#[case::pod_not_in_the_cache(a_running_box().with(Seen::NotSeen), "goes on")]
#[case::pod_refused(invalid(a_box().with(Seen::Absent)), "Stopped StartFailed - - Derived")]
#[case::pod_refused_and_not_looked_for(invalid(a_box().with(Seen::NotSeen)), "goes on")]
#[case::pod_refused_while_it_is_held_back(invalid(a_box().asks(json!({"stopped": true})).with(Seen::Absent)), "goes on")]
fn a_pod_that_did_not(#[case] world: World, #[case] expected: &str) {
    assert_eq!(told(&world.status()), expected);
}
