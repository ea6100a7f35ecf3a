//! Which Boxes ask for nothing any more, so that little of them need be kept.

use boxes_crds::State;
use boxes_lifecycle::settled;
use rstest::rstest;
use serde_json::json;

use crate::fixtures::{ABox, Decides, a_running_box, an_ended_box, at};

/// A Box whose clean-up is recorded as this build records it.
fn a_cleaned_up_box() -> ABox {
    let world = an_ended_box().with(boxes_lifecycle::Seen::Absent);
    let recorded = serde_json::to_value(world.status()).unwrap();
    an_ended_box().recorded(recorded)
}

#[test]
fn a_cleaned_up_box_asks_for_nothing() {
    let settled = settled(&a_cleaned_up_box().view()).unwrap();
    assert_eq!((settled.state, settled.expires_at), (State::Exited, None));
}

#[test]
fn one_with_a_ttl_is_asked_for_when_that_is_over() {
    let object = a_cleaned_up_box().asks(json!({"ttlSecondsAfterFinished": 7}));
    assert_eq!(settled(&object.view()).unwrap().expires_at, Some(at(57)));
}

#[rstest]
#[case::it_runs(a_running_box())]
#[case::its_pod_may_be_there(an_ended_box())]
#[case::it_is_deleted(a_cleaned_up_box().deleted())]
#[case::its_spec_was_changed(a_cleaned_up_box().of_generation(2))]
#[case::it_is_unreadable(a_cleaned_up_box().recorded(json!({"news": 1})))]
fn there_is_something_to_do_as_long_as(#[case] object: ABox) {
    assert_eq!(settled(&object.view()), None);
}
