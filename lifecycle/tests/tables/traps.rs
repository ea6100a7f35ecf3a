//! What naive code gets wrong (contract §3, below the table).

use boxes_lifecycle::{Phase, deletion_asked};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{
    ABox, APod, Decides, a_bound_pod, a_materializing_box, a_running_box, a_running_pod,
    an_ended_pod, told,
};

fn start_deadline(object: ABox) -> ABox {
    object
        .asks(json!({"startDeadlineSeconds": 30}))
        .stopped_at(40, "StartDeadline")
}

fn timed(seconds: i64) -> ABox {
    a_running_box().asks(json!({"activeDeadlineSeconds": seconds}))
}

/// The kubelet's word for a pod whose deadline has passed; the command ended at 50, which is 40 after
/// the pod's start.
fn overdue(code: i32, deadline: i64) -> APod {
    an_ended_pod(code, "Error")
        .with_deadline(deadline)
        .failed_by("DeadlineExceeded")
}

#[rstest]
#[case::ended_before_the_stop(a_running_box().stopped_at(51, "Spec"), an_ended_pod(4, "Error"), "Exited Exit 4 - Derived")]
#[case::a_tie_with_a_stop(a_running_box().stopped_at(50, "Spec"), an_ended_pod(4, "Error"), "Stopped Stopped 4 - Derived")]
#[case::ended_before_the_deletion(a_running_box(), an_ended_pod(4, "Error").deleted_at(51), "Exited Exit 4 - Derived")]
#[case::a_tie_with_a_deletion(a_running_box(), an_ended_pod(4, "Error").deleted_at(50), "Stopped PodDeleted 4 - Derived")]
#[case::deleted_and_gone_for_good_before_anyone_looked(
    a_running_box(),
    an_ended_pod(9, "Error").deleted_for_good_at(55, true),
    "Stopped PodDeleted 9 - Derived"
)]
#[case::ended_and_deleted_for_good_before_anyone_looked(
    a_running_box(),
    an_ended_pod(9, "Error").deleted_for_good_at(55, false),
    "Exited Exit 9 - Derived"
)]
#[case::ended_before_a_drain_whose_deletion_is_restamped(
    a_running_box(),
    an_ended_pod(5, "Error").disrupted_at(51, "EvictionByEvictionAPI").deleted_for_good_at(61, true),
    "Exited Exit 5 - Derived"
)]
#[case::drained_and_restamped(
    a_running_box(),
    an_ended_pod(9, "Error").disrupted_at(45, "EvictionByEvictionAPI").deleted_for_good_at(61, true),
    "Stopped Evicted 9 - Derived"
)]
#[case::deleted_together_with_its_box(
    a_running_box().deleted_at(45),
    an_ended_pod(143, "Error").deleted_at(46),
    "Stopped Stopped - 15 Derived"
)]
#[case::ended_before_its_box_was_deleted(
    a_running_box().deleted_at(51),
    an_ended_pod(4, "Error").deleted_at(52),
    "Exited Exit 4 - Derived"
)]
#[case::deleted_before_its_box(
    a_running_box().deleted_at(46),
    an_ended_pod(143, "Error").deleted_at(45),
    "Stopped PodDeleted - 15 Derived"
)]
#[case::ended_before_the_drain(a_running_box(), an_ended_pod(0, "Completed").deleted_at(51).disrupted_at(51, "EvictionByEvictionAPI"), "Exited Exit 0 - Derived")]
#[case::oom_before_the_drain(a_running_box(), an_ended_pod(137, "OOMKilled").deleted_at(51).disrupted_at(51, "EvictionByEvictionAPI"), "Exited OOM 137 - Derived")]
#[case::ended_before_the_deadline(timed(41), overdue(0, 41), "Exited Exit 0 - Derived")]
#[case::a_tie_with_the_deadline(timed(40), overdue(0, 40), "Exited Timeout - - Derived")]
#[case::deadline_exceeded_counts_when_failed(timed(30), overdue(3, 30).in_phase(Phase::Running), "Exited Exit 3 - Derived")]
#[case::a_stop_says_deadline_exceeded(a_running_box().stopped_at(45, "Spec"), overdue(143, 1), "Stopped Stopped - 15 Derived")]
#[case::a_stop_before_the_deadline(timed(38).stopped_at(45, "Spec"), overdue(143, 1), "Stopped Stopped - 15 Derived")]
#[case::a_stop_after_the_deadline(timed(30).stopped_at(45, "Spec"), overdue(143, 1), "Exited Timeout - - Derived")]
#[case::a_deadline_that_was_raised_too_late(
    timed(1000),
    overdue(143, 30),
    "Exited Timeout - - Derived"
)]
#[case::a_deadline_that_was_removed_too_late(
    a_running_box(),
    overdue(143, 30),
    "Exited Timeout - - Derived"
)]
#[case::the_kubelets_eviction_cannot_be_compared(a_running_box(), an_ended_pod(0, "Completed").disrupted_at(99, "TerminationByKubelet"), "Stopped Evicted 0 - Derived")]
#[case::a_condition_that_was_not_acted_on(a_running_box(), an_ended_pod(0, "Completed").in_phase(Phase::Succeeded).disrupted_at(45, "EvictionByEvictionAPI"), "Exited Exit 0 - Derived")]
#[case::an_unknown_disruption(a_running_box(), an_ended_pod(3, "Error").disrupted_at(45, "SomethingNew"), "Exited Exit 3 - Derived")]
#[case::an_oom_that_was_survived(
    a_running_box(),
    an_ended_pod(5, "OOMKilled"),
    "Exited Exit 5 - Derived"
)]
#[case::an_oom_counter_in_a_drain(a_running_box(), an_ended_pod(143, "OOMKilled").deleted_at(45).disrupted_at(45, "EvictionByEvictionAPI"), "Stopped Evicted - 15 Derived")]
#[case::own_137(
    a_running_box(),
    an_ended_pod(137, "Error"),
    "Exited Exit 137 - Derived"
)]
#[case::own_143(
    a_running_box(),
    an_ended_pod(143, "Error"),
    "Exited Exit 143 - Derived"
)]
#[case::no_signal_65(a_running_box().stopped_at(40, "Spec"), an_ended_pod(193, "Error"), "Stopped Stopped 193 - Derived")]
#[case::no_signal_0(a_running_box().stopped_at(40, "Spec"), an_ended_pod(128, "Error"), "Stopped Stopped 128 - Derived")]
#[case::unknown_is_not_137(
    a_running_box(),
    an_ended_pod(137, "ContainerStatusUnknown"),
    "Stopped PodLost - - Inferred"
)]
#[case::unknown_after_a_deletion(a_running_box(), an_ended_pod(137, "ContainerStatusUnknown").deleted_at(45), "Stopped PodDeleted - - Inferred")]
#[case::unknown_beside_a_sidecar(a_running_box(), an_ended_pod(137, "ContainerStatusUnknown").beside_a_sidecar(), "Stopped PodLost - - Inferred")]
#[case::unknown_before_the_pod_ended(a_running_box(), an_ended_pod(137, "ContainerStatusUnknown").in_phase(Phase::Running), "goes on")]
#[case::a_code_that_no_process_has(a_running_box(), an_ended_pod(-1, "Error"), "Stopped PodLost - - Inferred")]
#[case::a_sidecar_runs_on(a_running_box(), an_ended_pod(6, "Error").beside_a_sidecar(), "Exited Exit 6 - Derived")]
#[case::a_sidecar_ended(a_running_box(), a_running_pod(), "goes on")]
#[case::not_started_in_time(start_deadline(a_materializing_box()), a_bound_pod().with_deadline(1).failed_by("DeadlineExceeded"), "Stopped StartFailed - - Derived")]
#[case::started_at_the_last_moment(start_deadline(a_running_box()), an_ended_pod(143, "Error").with_deadline(1).failed_by("DeadlineExceeded"), "Stopped Stopped - 15 Derived")]
#[case::no_program_while_stopping(a_materializing_box().stopped_at(40, "Spec"), an_ended_pod(128, "StartError"), "Stopped Stopped - - Inferred")]
#[case::no_program_before_the_stop(a_materializing_box().stopped_at(60, "Spec"), an_ended_pod(128, "StartError"), "Stopped StartFailed - - Derived")]
#[case::the_collectors_word_is_not_the_kubelets(a_running_box(), a_running_pod().without_container().failed_by("").disrupted_at(60, "DeletionByPodGC"), "goes on")]
fn a_trap(#[case] object: ABox, #[case] pod: APod, #[case] expected: &str) {
    assert_eq!(told(&object.with(pod).status()), expected);
}

/// The kubelet's last delete moves the time of the deletion; what was seen before it is remembered.
#[rstest]
#[case::ended_before(51, "Exited Exit 5 - Derived")]
#[case::a_tie(50, "Stopped PodDeleted 5 - Derived")]
#[case::ended_after(45, "Stopped PodDeleted 5 - Derived")]
fn a_deletion_that_was_seen_when_it_was_asked_for(#[case] asked: i64, #[case] expected: &str) {
    let running = a_running_box().with(a_running_pod().deleted_at(asked));
    let mut world = a_running_box().with(an_ended_pod(5, "Error").deleted_for_good_at(60, true));
    world.deletion_asked = deletion_asked(&running);
    assert_eq!(told(&world.status()), expected);
}

#[rstest]
#[case::an_oom_that_was_survived(5)]
#[case::an_oom_that_was_not(137)]
fn an_oom_kill_is_in_the_history(#[case] code: i32) {
    let status = a_running_box()
        .with(an_ended_pod(code, "OOMKilled"))
        .status();
    assert!(
        status
            .history
            .iter()
            .any(|entry| entry.type_ == "OOMKilled")
    );
}

#[test]
fn a_deadline_before_the_start_is_named() {
    let object = a_materializing_box().asks(json!({"activeDeadlineSeconds": 30}));
    let pod = a_bound_pod()
        .with_deadline(30)
        .failed_by("DeadlineExceeded");
    let message = object.with(pod).status().message.unwrap();
    assert!(message.contains("activeDeadlineSeconds (30)"), "{message}");
}

#[test]
fn a_start_deadline_is_named_with_what_was_waited_for() {
    let object = start_deadline(a_materializing_box())
        .recorded(json!({"message": "ErrImagePull: no such image"}));
    let pod = a_bound_pod().with_deadline(1).failed_by("DeadlineExceeded");
    let message = object.with(pod).status().message.unwrap();
    assert!(message.contains("startDeadlineSeconds (30)"), "{message}");
    assert!(message.contains("no such image"), "{message}");
}

#[test]
fn parts_of_a_second_in_a_stop_are_not_compared() {
    let mut world = a_running_box()
        .asks(json!({"stopped": true}))
        .with(a_running_pod());
    world.now += jiff::SignedDuration::from_millis(900);
    let recorded = serde_json::to_value(world.status()).unwrap();
    let object = a_running_box().recorded(recorded);
    let mut pod = an_ended_pod(143, "Error")
        .with_deadline(1)
        .failed_by("DeadlineExceeded");
    let end = crate::fixtures::at(100);
    if let Some(container) = &mut pod.0.container
        && let boxes_lifecycle::RunState::Terminated { finished, .. } = &mut container.state
    {
        *finished = Some(end);
    }
    assert_eq!(
        told(&object.with(pod).status()),
        "Stopped Stopped - 15 Derived"
    );
}

#[rstest]
#[case::never_made(
    false,
    "Stopped StartFailed - - Derived",
    "activeDeadlineSeconds (30) passed before the command started"
)]
#[case::made_and_lost(true, "Exited Timeout - - Inferred", "its exit code is unknown")]
fn an_unknown_end_after_a_deadline_names_what_is_known(
    #[case] was_made: bool,
    #[case] ending: &str,
    #[case] message: &str,
) {
    let pod = a_bound_pod()
        .with_deadline(30)
        .failed_by("DeadlineExceeded")
        .with_unknown_end(was_made);
    let object = a_materializing_box().asks(json!({"activeDeadlineSeconds": 30}));
    let status = object.with(pod).status();
    assert_eq!(told(&status), ending);
    assert!(
        status.message.as_deref().unwrap().contains(message),
        "{status:?}"
    );
}
