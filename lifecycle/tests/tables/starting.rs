//! From a Box to its pod (contract §1, §5), and a Box that never gets one.

use boxes_lifecycle::{Refusal, Seen, World, needs_live_pod};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{
    ABox, Decides, a_bound_pod, a_box, a_materializing_box, a_running_box, a_running_pod,
    an_ended_box, an_ended_pod, an_unbound_pod, at, told,
};

fn created_stopped() -> ABox {
    a_box().asks(json!({"stopped": true}))
}

#[rstest]
#[case::first_the_record_is_held(a_box().not_held(), Seen::NotSeen, Some("hold_box"))]
#[case::as_the_schema_first_stores_it(
    a_box().not_held().recorded(json!({"observedGeneration": -1})),
    Seen::NotSeen,
    Some("hold_box")
)]
#[case::then_the_pod_is_made(a_box(), Seen::NotSeen, Some("create_pod"))]
#[case::positively_absent(a_box(), Seen::Absent, Some("create_pod"))]
#[case::created_stopped(created_stopped(), Seen::NotSeen, None)]
#[case::name_taken(a_box(), Seen::Foreign, None)]
#[case::has_one(a_box(), an_unbound_pod().into(), None)]
#[case::had_one(a_running_box(), Seen::Absent, None)]
#[case::had_one_by_the_record(a_running_box(), Seen::NotSeen, None)]
#[case::ended(an_ended_box(), Seen::Absent, None)]
#[case::stopped_before(a_box().stopped_at(40, "Spec"), Seen::Absent, None)]
#[case::deleted(a_box().deleted(), Seen::NotSeen, None)]
#[case::deleted_and_not_held(a_box().deleted().not_held(), Seen::Absent, None)]
#[case::deleted_and_absent(a_box().deleted(), Seen::Absent, Some("release_box"))]
#[case::deleted_and_taken(a_box().deleted(), Seen::Foreign, Some("release_box"))]
#[case::deleted_unrecorded(a_running_box().deleted(), Seen::Absent, None)]
#[case::deleted_recorded(an_ended_box().deleted(), Seen::Absent, Some("release_box"))]
#[case::deleted_recorded_and_not_looked_for(an_ended_box().deleted(), Seen::NotSeen, None)]
#[case::template_refused(a_box().asks(json!({"template": {"spec": {"nodeName": "x"}}})), Seen::NotSeen, None)]
fn the_next_write(#[case] object: ABox, #[case] pod: Seen, #[case] expected: Option<&str>) {
    assert_eq!(object.with(pod).write(), expected);
}

fn answered(refusal: Refusal, object: ABox) -> World {
    let mut world = object.with(Seen::Absent);
    world.refusal = Some(refusal);
    world
}

fn forbidden_until(seconds: i64) -> Refusal {
    Refusal::Forbidden {
        message: "exceeded quota".to_owned(),
        retry_at: at(seconds),
    }
}

#[test]
fn what_is_forbidden_is_asked_again_later() {
    let world = answered(forbidden_until(130), a_box());
    assert_eq!(world.write(), None);
    assert_eq!(world.decided().wake.unwrap().as_secs(), 30);
    assert_eq!(world.status().message.as_deref(), Some("exceeded quota"));
    assert_eq!(world.after(30).write(), Some("create_pod"));
}

#[rstest]
#[case::held_back(created_stopped().with(Seen::Absent))]
#[case::has_a_pod(a_running_box().with(a_running_pod()))]
#[case::ended(an_ended_box().with(Seen::Absent))]
fn an_old_answer_keeps_nobody_awake(#[case] mut world: World) {
    world.refusal = Some(forbidden_until(50));
    assert_eq!(world.decided().wake, None);
}

#[test]
fn a_taken_name_is_looked_at_again() {
    let wake = a_box().with(Seen::Foreign).decided().wake;
    assert_eq!(wake.unwrap().as_secs(), 30);
}

#[test]
fn nothing_is_made_in_a_namespace_that_goes() {
    let world = answered(Refusal::NamespaceTerminating, a_box());
    assert_eq!(world.write(), None);
    assert_eq!(told(&world.status()), "goes on");
}

#[test]
fn an_invalid_pod_ends_the_box_and_makes_none() {
    let message = "too big".to_owned();
    let world = answered(Refusal::Invalid { message }, a_box());
    assert_eq!(world.write(), None);
    assert!(world.status().message.unwrap().contains("too big"));
    let mut cached = a_box().with(Seen::NotSeen);
    cached.refusal.clone_from(&world.refusal);
    assert!(
        needs_live_pod(&cached),
        "a cache is no proof that there is no pod"
    );
}

fn late(reason: &str) -> ABox {
    a_box()
        .says("Accepted", "False", reason)
        .asks(json!({"startDeadlineSeconds": 60}))
}

#[rstest]
#[case::name_taken(late("PodNameTaken").with(Seen::Foreign))]
#[case::forbidden(late("PodForbidden").with(Seen::Absent))]
#[case::template_refused(late("TemplateInvalid").asks(json!({"template": {"spec": {"nodeName": "x"}}})).with(Seen::Absent))]
fn a_box_that_cannot_start_ends_at_its_start_deadline(#[case] world: World) {
    // Refused since 30, so that it ends at 90.
    let status = world.status();
    assert_eq!(told(&status), "Stopped StartFailed - - Derived");
    assert!(
        status
            .message
            .unwrap()
            .contains("startDeadlineSeconds (60)")
    );
    assert_eq!(world.write(), None, "an ending box makes no pod");
    let early = world.after(-15);
    assert_eq!(told(&early.status()), "goes on");
    assert_eq!(early.decided().wake.unwrap().as_secs(), 5);
}

#[test]
fn a_box_that_was_created_stopped_waits() {
    let world = created_stopped().with(Seen::Absent);
    let recorded = serde_json::to_value(world.status()).unwrap();
    let object = created_stopped().recorded(recorded);
    let again = object.clone().of_generation(2).with(Seen::Absent);
    assert_eq!(again.status().stop, None);
    assert_eq!(
        object
            .asks(json!({"stopped": false}))
            .with(Seen::Absent)
            .write(),
        Some("create_pod")
    );
}

#[test]
fn a_box_that_was_asked_to_run_ends_when_it_is_stopped_without_a_pod() {
    let waiting = answered(forbidden_until(130), a_box());
    let object = a_box()
        .recorded(serde_json::to_value(waiting.status()).unwrap())
        .asks(json!({"stopped": true}))
        .of_generation(2);
    assert!(needs_live_pod(&object.clone().with(Seen::NotSeen)));
    let stopping = object.clone().with(Seen::Absent);
    let status = stopping.status();
    assert_eq!(status.stop.as_ref().unwrap().by, "Spec");
    let object = object.recorded(serde_json::to_value(status).unwrap());
    assert!(needs_live_pod(&object.clone().with(Seen::NotSeen)));
    let world = object.asks(json!({"stopped": false})).with(Seen::Absent);
    assert_eq!(world.write(), None);
    assert_eq!(told(&world.status()), "Stopped Stopped - - Inferred");
}

#[test]
fn a_lowered_deadline_reaches_the_pod() {
    let object = a_running_box().asks(json!({"activeDeadlineSeconds": 60}));
    assert_eq!(
        object.clone().with(a_running_pod()).write(),
        Some("lower_deadline")
    );
    let followed = a_running_pod().with_deadline(60);
    assert_eq!(object.clone().with(followed).write(), None);
    let ended = an_ended_pod(0, "Completed").beside_a_sidecar();
    assert_eq!(object.with(ended).write(), None);
}

#[test]
fn a_clock_that_lags_behind_the_servers_delays_a_status_by_a_moment_only() {
    let world = a_materializing_box().with(a_bound_pod()).after(-1000);
    let wake = world.decided().wake.unwrap().as_secs();
    assert!(wake <= 2, "{wake}");
}

#[test]
fn a_pod_that_the_scheduler_has_not_come_to_is_no_news_for_ten_seconds() {
    // It was made at 5.
    let since_creation = |seconds: i64| a_box().with(an_unbound_pod()).after(seconds - 95);
    assert_eq!(since_creation(9).decided().status, None);
    assert!(since_creation(10).decided().status.is_some());
}

/// A Box whose pod has been bound for so long, while many others change.
fn bound_in_a_crowd(seconds: i64) -> World {
    let mut world = a_materializing_box()
        .recorded(json!({"conditions": []}))
        .with(a_bound_pod())
        .after(seconds - 90);
    world.crowded = true;
    world
}

#[test]
fn in_a_crowd_the_way_to_running_is_no_news_for_ten_seconds() {
    let decision = bound_in_a_crowd(9).decided();
    assert_eq!(decision.status, None);
    assert!(bound_in_a_crowd(10).decided().status.is_some());
}

#[test]
fn a_crowd_that_is_gone_delays_a_status_by_a_moment_only() {
    let world = bound_in_a_crowd(3);
    assert_eq!(world.decided().wake.unwrap().as_secs(), 2);
    let after = World {
        crowded: false,
        ..world.after(2)
    };
    assert!(after.decided().status.is_some());
}

#[test]
fn in_a_crowd_that_the_command_runs_is_written_at_once() {
    let mut world = a_materializing_box().with(a_running_pod());
    world.crowded = true;
    assert_eq!(world.status().state.as_deref(), Some("Running"));
}
