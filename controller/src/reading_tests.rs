//! What a read says, and what it does not: only the API server's own word for this very object is
//! an absence.

use boxes_lifecycle::{NodeView, Seen, World};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::error::Error;
use crate::fake::{a_box, context, failure, its_pod};
use crate::memory::Memory;
use crate::observe::observe;

/// Observes a Box whose record names a pod that the cache does not have.
async fn observed(answer: (u16, Value)) -> Result<World, Error> {
    let (cx, _) = context(vec![answer]);
    let record = json!({"state": "Running", "run": {"number": 1, "pod": {"name": "hello", "uid": "pod-uid"}}});
    observe(
        &cx,
        &a_box(&record),
        &Memory::default(),
        Timestamp::UNIX_EPOCH,
    )
    .await
}

#[tokio::test]
async fn a_typed_404_is_an_absence() {
    let world = observed(failure(404, "NotFound", "hello")).await.unwrap();
    assert_eq!(world.pod, Seen::Absent);
}

#[tokio::test]
async fn a_pod_that_the_cache_misses_is_found() {
    let world = observed((200, its_pod())).await.unwrap();
    assert!(world.pod.ours().is_some(), "{:?}", world.pod);
}

#[tokio::test]
async fn a_pod_of_that_name_with_another_uid_is_the_absence_of_ours() {
    let mut other = its_pod();
    other["metadata"]["uid"] = "another".into();
    assert_eq!(observed((200, other)).await.unwrap().pod, Seen::Absent);
}

#[rstest]
#[case::of_another_object(failure(404, "NotFound", "another"))]
#[case::of_a_resource_type(failure(404, "NotFound", ""))]
#[case::from_something_in_between((404, json!("page not found")))]
#[case::forbidden(failure(403, "Forbidden", "hello"))]
#[case::throttled(failure(429, "TooManyRequests", "hello"))]
#[case::server_error(failure(500, "InternalError", "hello"))]
#[case::unavailable(failure(503, "ServiceUnavailable", "hello"))]
#[case::gateway_timeout(failure(504, "Timeout", "hello"))]
#[case::not_a_pod((200, json!([1, 2])))]
#[tokio::test]
async fn no_other_answer_is(#[case] answer: (u16, Value)) {
    assert!(observed(answer).await.is_err());
}

/// Observes a Box that is stopped and whose pod, read live, waits for its kubelet.
async fn observed_on_node(answer: (u16, Value)) -> Result<World, Error> {
    let (cx, _) = context(vec![(200, its_pod()), answer]);
    let record = json!({
        "state": "Running", "run": {"number": 1, "pod": {"name": "hello", "uid": "pod-uid"}},
        "stop": {"requestedAt": "2026-01-01T00:00:00Z", "by": "Spec"},
    });
    observe(
        &cx,
        &a_box(&record),
        &Memory::default(),
        Timestamp::UNIX_EPOCH,
    )
    .await
}

#[tokio::test]
async fn a_typed_404_of_the_node_begins_its_absence() {
    let world = observed_on_node(failure(404, "NotFound", "node")).await;
    let since = Timestamp::UNIX_EPOCH;
    assert_eq!(world.unwrap().node, NodeView::AbsentSince { since });
}

#[rstest]
#[case::of_another_object(failure(404, "NotFound", "another"))]
#[case::from_something_in_between((404, json!("page not found")))]
#[case::forbidden(failure(403, "Forbidden", "node"))]
#[case::throttled(failure(429, "TooManyRequests", "node"))]
#[case::server_error(failure(500, "InternalError", "node"))]
#[tokio::test]
async fn no_other_answer_makes_a_node_absent(#[case] answer: (u16, Value)) {
    assert!(observed_on_node(answer).await.is_err());
}
