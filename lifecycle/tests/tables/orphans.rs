//! Pods whose Box is gone (contract §6).

use boxes_lifecycle::{ORPHAN_AGE, Orphan, orphan_write};
use rstest::rstest;

use crate::fixtures::{APod, a_bound_pod, a_running_pod, an_ended_pod, an_unbound_pod, at};

const CERTAIN: Orphan = Orphan {
    absent_now: true,
    absent_before: true,
};

#[rstest]
#[case::running(a_running_pod(), Some("lower_deadline"))]
#[case::being_stopped(a_running_pod().with_deadline(1), None)]
#[case::being_deleted(a_running_pod().deleted_at(50), None)]
#[case::bound(a_bound_pod(), Some("lower_deadline"))]
#[case::unbound(an_unbound_pod(), Some("delete_pod"))]
#[case::unbound_and_deleting(an_unbound_pod().deleted_at(50), Some("release_pod"))]
#[case::ended(an_ended_pod(3, "Error"), Some("release_pod"))]
#[case::released(an_ended_pod(3, "Error").held_by(&[]), Some("delete_pod"))]
#[case::collected_with_its_node(a_running_pod().failed_by("").deleted_at(50).disrupted_at(50, "DeletionByPodGC"), Some("release_pod"))]
fn is_stopped_and_released(#[case] pod: APod, #[case] expected: Option<&str>) {
    let write = orphan_write(at(700), &pod.0, CERTAIN);
    assert_eq!(write.map(|write| write.as_str()), expected);
}

#[rstest]
#[case::found(false, true)]
#[case::found_before(true, false)]
#[case::found_twice(false, false)]
fn is_left_alone_while_its_owner_may_be_there(#[case] now: bool, #[case] before: bool) {
    let owner = Orphan {
        absent_now: now,
        absent_before: before,
    };
    assert_eq!(orphan_write(at(700), &a_running_pod().0, owner), None);
}

#[test]
fn is_left_alone_while_it_is_young() {
    let made = at(5);
    assert_eq!(
        orphan_write(made + ORPHAN_AGE, &a_running_pod().0, CERTAIN),
        None
    );
}

#[test]
fn a_pod_without_an_owner_is_nobodys() {
    let mut pod = a_running_pod().0;
    pod.metadata.owner_references = None;
    assert_eq!(orphan_write(at(700), &pod, CERTAIN), None);
}
