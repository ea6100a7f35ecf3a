//! Conditions (contract §4), and what kstatus makes of them.

use boxes_crds::BoxStatus;
use boxes_lifecycle::{NodeView, Refusal, Seen, Trouble, World};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{
    ABox, APod, Decides, a_bound_pod, a_box, a_materializing_box, a_running_box, a_running_pod,
    an_ended_box, an_ended_pod, an_unbound_pod, at, wire,
};

/// Status and reason of a condition: `"True Accepted"`.
fn said(status: &BoxStatus, type_: &str) -> String {
    let found = status.conditions.iter().find(|known| known.type_ == type_);
    found.map_or("-".to_owned(), |known| {
        format!("{} {}", known.status, known.reason)
    })
}

/// What kstatus reads: Stalled first, then Reconciling.
fn kstatus(status: &BoxStatus) -> &'static str {
    let holds = |type_: &str| said(status, type_).starts_with("True");
    match (holds("Stalled"), holds("Reconciling")) {
        (true, _) => "Failed",
        (false, true) => "InProgress",
        (false, false) => "Current",
    }
}

#[rstest]
#[case::no_pod(a_box().with(Seen::Absent), "Pending", "InProgress")]
#[case::created_stopped(a_box().asks(json!({"stopped": true})).with(Seen::Absent), "Pending", "InProgress")]
#[case::unbound(a_box().with(an_unbound_pod()), "Pending", "InProgress")]
#[case::bound(a_box().with(a_bound_pod()), "Materializing", "InProgress")]
#[case::running(a_box().with(a_running_pod()), "Running", "Current")]
#[case::stopping(a_running_box().stopped_at(90, "Spec").with(a_running_pod()), "Running", "InProgress")]
#[case::deleting(a_running_box().deleted().with(a_running_pod()), "Running", "InProgress")]
#[case::exit_0(a_running_box().with(an_ended_pod(0, "Completed")), "Exited", "Current")]
#[case::exit_3(a_running_box().with(an_ended_pod(3, "Error")), "Exited", "Failed")]
#[case::oom(a_running_box().with(an_ended_pod(137, "OOMKilled")), "Exited", "Failed")]
#[case::stopped(a_running_box().stopped_at(40, "Spec").with(an_ended_pod(143, "Error")), "Stopped", "Current")]
#[case::evicted(a_running_box().with(an_ended_pod(143, "Error").failed_by("Evicted")), "Stopped", "Failed")]
#[case::pod_deleted(a_running_box().with(an_ended_pod(143, "Error").deleted_at(40)), "Stopped", "Failed")]
#[case::pod_lost(a_running_box().with(Seen::Absent), "Stopped", "Failed")]
#[case::not_started(a_materializing_box().with(an_ended_pod(128, "StartError")), "Stopped", "Failed")]
#[case::stopped_before_the_start(a_materializing_box().stopped_at(40, "Spec").with(a_bound_pod().failed_by("DeadlineExceeded")), "Stopped", "Current")]
fn every_state(#[case] world: World, #[case] state: &str, #[case] read: &str) {
    let status = world.status();
    assert_eq!(status.state.as_deref(), Some(state));
    assert_eq!(kstatus(&status), read, "{:#?}", status.conditions);
    assert_eq!(status.observed_generation, Some(1));
    for condition in &status.conditions {
        assert_eq!(
            condition.observed_generation,
            Some(1),
            "{}",
            condition.type_
        );
        assert!(!condition.reason.is_empty());
    }
}

#[rstest]
#[case::goes_on(a_running_box().with(a_running_pod()), "False Running")]
#[case::exited(a_running_box().with(an_ended_pod(3, "Error")), "True Exit")]
#[case::stopped(a_running_box().stopped_at(40, "Spec").with(an_ended_pod(3, "Error")), "True Stopped")]
fn ended(#[case] world: World, #[case] expected: &str) {
    assert_eq!(said(&world.status(), "Ended"), expected);
}

fn silent(world: World) -> World {
    world.on(NodeView::Present {
        ready: false,
        out_of_service: false,
    })
}

fn troubled(mut world: World, attempts: u32) -> World {
    let error = "quota".to_owned();
    let next = at(400);
    world.trouble = Some(Trouble {
        attempts,
        error,
        next,
    });
    world
}

#[rstest]
#[case::running(a_running_box().with(a_running_pod()), "-")]
#[case::stopping(a_running_box().stopped_at(90, "Spec").with(a_running_pod()), "False Stopping")]
#[case::ended(an_ended_box().with(an_ended_pod(3, "Error")), "False Stopping")]
#[case::gone(an_ended_box().with(Seen::Absent), "True CleanedUp")]
#[case::not_looked_for(an_ended_box().with(Seen::NotSeen), "False Stopping")]
#[case::unreachable(silent(a_running_box().stopped_at(90, "Spec").with(a_running_pod())), "False NodeUnreachable")]
#[case::unreachable_and_deleted_by_someone(silent(a_running_box().with(a_running_pod().deleted_at(50))), "False NodeUnreachable")]
#[case::unreachable_and_stopped_before(silent(an_ended_box().with(an_ended_pod(3, "Error"))), "False Stopping")]
#[case::node_gone(a_running_box().stopped_at(90, "Spec").with(a_running_pod()).on(NodeView::AbsentSince { since: at(99) }), "False NodeUnreachable")]
#[case::held_by_others(an_ended_box().with(an_ended_pod(3, "Error").deleted_at(60).held_by(&["example.com/x"])), "False ForeignFinalizer")]
#[case::seven_failures(troubled(an_ended_box().with(an_ended_pod(3, "Error")), 7), "False Stopping")]
#[case::eight_failures(troubled(an_ended_box().with(an_ended_pod(3, "Error")), 8), "False CleanupStalled")]
fn cleaned_up(#[case] world: World, #[case] expected: &str) {
    assert_eq!(said(&world.status(), "CleanedUp"), expected);
}

#[test]
fn a_stalled_clean_up_reads_failed_and_says_when_it_goes_on() {
    let status = troubled(an_ended_box().with(an_ended_pod(0, "Completed")), 9).status();
    assert_eq!(said(&status, "Stalled"), "True CleanupStalled");
    let found = status
        .conditions
        .iter()
        .find(|known| known.type_ == "Stalled")
        .unwrap();
    let next = wire(400);
    for part in ["9 attempts", "quota", next.as_str().unwrap()] {
        assert!(found.message.contains(part), "{}", found.message);
    }
}

#[test]
fn a_clean_up_is_written_once_and_needs_no_live_reads_after_that() {
    let done = an_ended_box().with(Seen::Absent).status();
    let done = an_ended_box().recorded(serde_json::to_value(done).unwrap());
    let cached = done.clone().with(Seen::NotSeen);
    assert!(!boxes_lifecycle::needs_live_pod(&cached));
    for world in [
        cached,
        done.clone().with(Seen::Absent),
        done.with(Seen::Foreign),
    ] {
        let decision = world.decided();
        assert_eq!((decision.write, decision.status), (None, None));
    }
}

fn forbidden(mut world: World) -> World {
    let message = "exceeded quota".to_owned();
    world.refusal = Some(Refusal::Forbidden {
        message,
        retry_at: at(130),
    });
    world
}

fn invalid(mut world: World) -> World {
    let message = "too big".to_owned();
    world.refusal = Some(Refusal::Invalid { message });
    world
}

fn made_from(generation: &str, pod: APod) -> APod {
    let mut pod = pod;
    let annotations = [
        ("boxes.run/generation", generation),
        ("boxes.run/spec-hash", "of-another-spec"),
    ];
    pod.0.metadata.annotations = Some(
        annotations
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    );
    pod
}

fn same_spec(generation: &str, pod: APod) -> APod {
    let mut pod = made_from(generation, pod);
    let spec = serde_json::from_value(json!({"image": "busybox"})).unwrap();
    let hash = boxes_lifecycle::spec_hash(&spec);
    let all = pod.0.metadata.annotations.as_mut().unwrap();
    all.insert("boxes.run/spec-hash".to_owned(), hash);
    pod
}

fn templated(template: Value) -> ABox {
    a_box().asks(json!({"template": {"spec": template}}))
}

#[rstest]
#[case::no_pod(a_box().with(Seen::Absent), "True Accepted")]
#[case::a_pod(a_box().with(a_running_pod()), "True Accepted")]
#[case::foreign(a_box().with(Seen::Foreign), "False PodNameTaken")]
#[case::template(templated(json!({"nodeName": "x"})).with(Seen::Absent), "False TemplateInvalid")]
#[case::forbidden(forbidden(a_box().with(Seen::Absent)), "False PodForbidden")]
#[case::invalid(invalid(a_box().with(Seen::Absent)), "False PodInvalid")]
#[case::another_spec(a_box().of_generation(2).with(made_from("1", a_running_pod())), "False SpecChanged")]
#[case::the_same_spec(a_box().of_generation(2).with(same_spec("1", a_running_pod())), "True Accepted")]
#[case::a_deadline_lowered(a_box().of_generation(2).asks(json!({"activeDeadlineSeconds": 60})).with(same_spec("1", a_running_pod())), "True Accepted")]
#[case::a_deadline_raised_too_late(a_box().of_generation(2).asks(json!({"activeDeadlineSeconds": 60})).with(same_spec("1", a_running_pod()).with_deadline(30)), "False SpecChanged")]
#[case::a_deadline_removed_too_late(a_box().of_generation(2).with(same_spec("1", a_running_pod()).with_deadline(30)), "False SpecChanged")]
#[case::a_pod_lowered_by_someone(a_box().with(same_spec("1", a_running_pod()).with_deadline(30)), "True Accepted")]
#[case::stays_after_a_stop(a_running_box().says("Accepted", "False", "SpecChanged").stopped_at(90, "Spec").with(a_running_pod()), "False SpecChanged")]
#[case::stays_after_the_end(an_ended_box().says("Accepted", "False", "SpecChanged").with(Seen::Absent), "False SpecChanged")]
#[case::stays_without_a_pod(a_running_box().says("Accepted", "False", "SpecChanged").with(Seen::NotSeen), "False SpecChanged")]
#[case::stays_forbidden_after_a_restart(a_box().says("Accepted", "False", "PodForbidden").with(Seen::NotSeen), "False PodForbidden")]
#[case::is_no_longer_taken(a_box().says("Accepted", "False", "PodNameTaken").with(Seen::Absent), "True Accepted")]
#[case::is_no_longer_forbidden(a_box().says("Accepted", "False", "PodForbidden").with(a_bound_pod()), "True Accepted")]
#[case::is_asked_anew(a_box().of_generation(2).says("Accepted", "False", "PodForbidden").with(Seen::NotSeen), "True Accepted")]
fn accepted(#[case] world: World, #[case] expected: &str) {
    assert_eq!(said(&world.status(), "Accepted"), expected);
}

#[test]
fn a_transition_time_moves_with_the_status_alone() {
    let since = |status: &BoxStatus, type_: &str| {
        let found = status.conditions.iter().find(|known| known.type_ == type_);
        found.unwrap().last_transition_time.0
    };
    let object = a_running_box().says("Ended", "False", "Running").says(
        "Reconciling",
        "True",
        "Materializing",
    );
    let status = object.with(a_running_pod()).status();
    assert_eq!(since(&status, "Ended"), at(30));
    assert_eq!(since(&status, "Reconciling"), at(100));
}

#[test]
fn conditions_of_others_are_neither_kept_nor_a_change() {
    let status = an_ended_box().with(Seen::Absent).status();
    let object = an_ended_box()
        .recorded(serde_json::to_value(&status).unwrap())
        .says("Theirs", "True", "Theirs");
    assert_eq!(object.with(Seen::Absent).decided().status, None);
}
