//! A Box that this build cannot read: nothing is written and nothing is touched, until it is
//! released (contract §3, §6).

use boxes_lifecycle::{Seen, World, needs_live_pod, needs_namespace, needs_node};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{
    ABox, Decides, a_bound_pod, a_box, a_running_box, a_running_pod, an_ended_pod, an_unbound_pod,
};

fn odd() -> ABox {
    a_running_box().recorded(json!({"state": "Hibernated"}))
}

/// Held by a build that could read it, and never recorded.
fn new() -> ABox {
    a_box().asks(json!({"image": 5}))
}

fn confirmed() -> ABox {
    odd().annotated("boxes.run/confirm-stopped", "pod-1")
}

fn terminating(mut world: World) -> World {
    world.namespace_terminating = true;
    world
}

#[rstest]
#[case::running(odd().with(a_running_pod()))]
#[case::ended(odd().with(an_ended_pod(3, "Error")))]
#[case::stopped(odd().asks(json!({"stopped": true})).with(a_running_pod()))]
#[case::deleted(odd().deleted().with(a_running_pod()))]
#[case::deleted_and_ended(odd().deleted().with(an_ended_pod(3, "Error")))]
#[case::deleted_without_a_pod(odd().deleted().with(Seen::Absent))]
#[case::without_a_pod(odd().with(Seen::Absent))]
#[case::not_in_the_cache(odd().with(Seen::NotSeen))]
#[case::foreign(odd().with(Seen::Foreign))]
#[case::expired(odd().asks(json!({"ttlSecondsAfterFinished": 0})).with(Seen::Absent))]
#[case::forced(odd().annotated("boxes.run/force-stop", "pod-1").with(a_running_pod()))]
#[case::another_pod_is_confirmed(odd().annotated("boxes.run/confirm-stopped", "pod-2").with(a_running_pod()))]
#[case::spec(a_running_box().asks(json!({"image": 5})).with(an_ended_pod(3, "Error")))]
#[case::new(new().with(Seen::Absent))]
#[case::new_and_deleted_with_a_pod(new().deleted().with(a_running_pod()))]
#[case::new_and_deleted_and_not_in_the_cache(new().deleted().with(Seen::NotSeen))]
#[case::recorded_and_deleted(new().recorded(json!({"state": "Pending"})).deleted().with(Seen::Absent))]
#[case::its_namespace_goes_and_it_runs(terminating(odd().deleted().with(a_running_pod().deleted_at(90))))]
fn is_left_alone(#[case] world: World) {
    let decision = world.decided();
    assert_eq!((decision.write, decision.status), (None, None));
}

#[rstest]
#[case::the_pod(confirmed().with(a_running_pod()), Some("release_pod"))]
#[case::the_pod_of_a_deleted_box(confirmed().deleted().with(a_running_pod()), Some("release_pod"))]
#[case::then_the_box(confirmed().deleted().with(a_running_pod().held_by(&[])), Some("release_box"))]
#[case::without_its_pod(confirmed().deleted().with(Seen::Absent), Some("release_box"))]
#[case::when_the_cache_lacks_it(confirmed().deleted().with(Seen::NotSeen), None)]
#[case::only_a_deleted_box(confirmed().with(Seen::Absent), None)]
#[case::new(new().deleted().with(Seen::Absent), Some("release_box"))]
#[case::new_by_the_schema(new().recorded(json!({"observedGeneration": -1})).deleted().with(Seen::Absent), Some("release_box"))]
#[case::with_its_namespace(terminating(odd().deleted().with(an_ended_pod(3, "Error").deleted_at(90))), Some("release_pod"))]
#[case::unbound_with_its_namespace(terminating(odd().with(an_unbound_pod().deleted_at(90))), Some("release_pod"))]
#[case::last_with_its_namespace(terminating(odd().deleted().with(Seen::Absent)), Some("release_box"))]
#[case::not_before_its_pod_has_gone(terminating(odd().deleted().with(an_ended_pod(3, "Error").held_by(&[]))), None)]
fn is_released(#[case] world: World, #[case] expected: Option<&str>) {
    let decision = world.decided();
    assert_eq!(decision.write.map(|write| write.as_str()), expected);
    assert_eq!(decision.status, None);
}

#[test]
fn its_namespace_is_looked_at_while_it_goes() {
    let world = odd().with(a_bound_pod().deleted_at(90));
    assert!(needs_namespace(&world));
    assert!(needs_node(&world).is_some());
    assert!(terminating(world).decided().wake.is_some());
    assert!(needs_live_pod(&odd().deleted().with(Seen::NotSeen)));
}
