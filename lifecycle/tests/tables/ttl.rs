//! The time after the end at which a Box goes.

use boxes_lifecycle::{Seen, World};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{Decides, a_running_box, an_ended_box, an_ended_pod};

/// One that ended at 50 and whose clean-up is recorded.
fn done(ttl: Option<i64>) -> World {
    let object = an_ended_box().says("CleanedUp", "True", "CleanedUp");
    let object = match ttl {
        Some(ttl) => object.asks(json!({"ttlSecondsAfterFinished": ttl})),
        None => object,
    };
    object.with(Seen::Absent)
}

#[rstest]
#[case::kept_for_ever(done(None), None)]
#[case::at_once(done(Some(0)), Some("delete_box"))]
#[case::due(done(Some(50)), Some("delete_box"))]
#[case::not_yet(done(Some(51)), None)]
#[case::long_ago(done(Some(51)).after(1_000_000), Some("delete_box"))]
#[case::not_cleaned_up(an_ended_box().asks(json!({"ttlSecondsAfterFinished": 0})).with(an_ended_pod(3, "Error").held_by(&["x/y"]).deleted_at(60)), None)]
#[case::runs(a_running_box().asks(json!({"ttlSecondsAfterFinished": 0})).with(Seen::NotSeen), None)]
fn expiry(#[case] world: World, #[case] expected: Option<&str>) {
    assert_eq!(world.write(), expected);
}

#[test]
fn it_wakes_when_it_is_due() {
    assert_eq!(done(Some(60)).decided().wake.unwrap().as_secs(), 10);
    assert_eq!(done(None).decided().wake, None);
}

#[test]
fn one_without_a_run_expires_by_the_time_that_its_end_was_noticed() {
    let object = crate::fixtures::a_box()
        .recorded(json!({"state": "Stopped", "reason": "StartFailed", "evidence": "Derived"}))
        .says("Ended", "True", "StartFailed")
        .says("CleanedUp", "True", "CleanedUp")
        .asks(json!({"ttlSecondsAfterFinished": 71}));
    let world = object.with(Seen::Absent);
    assert_eq!(world.write(), None);
    assert_eq!(world.after(1).write(), Some("delete_box"));
}
