//! What is sent to the API server, and what its answers come to.

use boxes_lifecycle::{Refusal, Seen, World, Write};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::apply::{Outcome, apply, write_status};
use crate::context::Context;
use crate::error::Error;
use crate::fake::{Asked, a_box, context, failure, its_pod};
use crate::memory::Memory;

fn world() -> World {
    let object = a_box(&Value::Null);
    let pod = serde_json::from_value(its_pod()).unwrap();
    World {
        pod: Seen::judge(&object, Some(pod), true),
        ..World::unseen(object, Timestamp::UNIX_EPOCH)
    }
}

/// Makes a write and gives its outcome, the request, and what is remembered.
async fn after(write: Write, answer: (u16, Value)) -> (Result<Outcome, Error>, Asked, Memory) {
    let (cx, log) = context(vec![answer]);
    cx.memories
        .change("box-uid", |memory| memory.just_held = true);
    let outcome = apply(&cx, &world(), &write).await;
    let asked = log.lock().unwrap().first().cloned().unwrap();
    (outcome, asked, memory(&cx))
}

fn memory(cx: &Context) -> Memory {
    Memory {
        just_held: false,
        ..cx.memories.of("box-uid")
    }
}

fn creation() -> Write {
    Write::CreatePod(Box::default())
}

fn lowering() -> Write {
    Write::LowerDeadline {
        uid: "pod-uid".into(),
        resource_version: "9".into(),
        seconds: 1,
    }
}

fn deletion() -> Write {
    Write::DeletePod {
        uid: "pod-uid".into(),
        resource_version: None,
        grace: None,
    }
}

fn release() -> Write {
    Write::ReleasePod {
        uid: "pod-uid".into(),
        resource_version: "9".into(),
    }
}

#[tokio::test]
async fn a_name_in_use_is_looked_at_next() {
    let (outcome, _, memory) = after(creation(), failure(409, "AlreadyExists", "hello")).await;
    assert_eq!(outcome.unwrap(), Outcome::Answered);
    assert!(memory.name_collided);
}

#[tokio::test]
async fn an_invalid_pod_is_remembered_with_the_servers_words() {
    let (outcome, _, memory) = after(creation(), failure(422, "Invalid", "hello")).await;
    assert_eq!(outcome.unwrap(), Outcome::Answered);
    assert_eq!(
        memory.refusal,
        Some(Refusal::Invalid {
            message: "Invalid of hello".into()
        })
    );
}

#[tokio::test]
async fn a_forbidden_pod_is_tried_again_later() {
    let (_, _, memory) = after(creation(), failure(403, "Forbidden", "hello")).await;
    let Some(Refusal::Forbidden { retry_at, .. }) = memory.refusal else {
        panic!("{memory:?}");
    };
    assert!(retry_at > Timestamp::UNIX_EPOCH);
}

#[tokio::test]
async fn a_namespace_that_goes_is_no_refusal_of_the_pod() {
    let mut answer = failure(403, "Forbidden", "hello");
    answer.1["details"]["causes"] = json!([{"reason": "NamespaceTerminating"}]);
    let (_, _, memory) = after(creation(), answer).await;
    assert_eq!(memory.refusal, Some(Refusal::NamespaceTerminating));
}

#[tokio::test]
async fn a_server_error_on_creation_is_an_error_and_nothing_else() {
    let (outcome, _, memory) = after(creation(), failure(500, "InternalError", "hello")).await;
    assert_eq!(outcome.unwrap_err().class(), "server");
    assert_eq!(memory, Memory::default());
}

#[tokio::test]
async fn a_refused_deadline_leads_to_a_deletion_and_an_error_does_not() {
    let (outcome, _, memory) = after(lowering(), failure(403, "Forbidden", "hello")).await;
    assert_eq!(outcome.unwrap(), Outcome::Answered);
    assert!(memory.deadline_refused);
    let (outcome, _, memory) = after(lowering(), failure(500, "InternalError", "hello")).await;
    assert!(outcome.is_err());
    assert!(!memory.deadline_refused);
}

#[tokio::test]
async fn a_conflict_means_that_the_decision_is_outdated() {
    let (outcome, _, _) = after(lowering(), failure(409, "Conflict", "hello")).await;
    assert!(outcome.unwrap_err().is_outdated());
}

#[tokio::test]
async fn a_deletion_names_the_uid() {
    let (_, asked, _) = after(deletion(), (200, its_pod())).await;
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("DELETE", "/api/v1/namespaces/here/pods/hello")
    );
    assert_eq!(asked.body["preconditions"]["uid"], "pod-uid");
}

#[tokio::test]
async fn a_release_takes_our_finalizer_alone_and_is_guarded() {
    let (_, asked, _) = after(release(), (200, its_pod())).await;
    let metadata =
        json!({"finalizers": ["example.org/other"], "uid": "pod-uid", "resourceVersion": "9"});
    assert_eq!(asked.body, json!({"metadata": metadata}));
}

#[tokio::test]
async fn a_lowered_deadline_is_guarded() {
    let (_, asked, _) = after(lowering(), (200, its_pod())).await;
    let metadata = json!({"uid": "pod-uid", "resourceVersion": "9"});
    assert_eq!(
        asked.body,
        json!({"metadata": metadata, "spec": {"activeDeadlineSeconds": 1}})
    );
}

#[tokio::test]
async fn releasing_a_box_keeps_the_finalizers_of_others() {
    let answer = serde_json::json!({"metadata": {"name": "hello"}, "spec": {"image": "x"}});
    let (_, asked, _) = after(Write::ReleaseBox, (200, answer)).await;
    let metadata =
        json!({"finalizers": ["example.org/other"], "uid": "box-uid", "resourceVersion": "7"});
    assert_eq!(asked.body, json!({"metadata": metadata}));
}

#[tokio::test]
async fn a_status_is_written_on_the_version_that_it_was_decided_on() {
    let answer = serde_json::json!({"metadata": {"name": "hello", "resourceVersion": "8"}, "spec": {"image": "x"}});
    let (cx, log) = context(vec![(200, answer)]);
    write_status(&cx, &world().object, &boxes_crds::BoxStatus::default())
        .await
        .unwrap();
    let asked = log.lock().unwrap()[0].clone();
    assert_eq!(
        asked.path,
        "/apis/boxes.run/v1alpha1/namespaces/here/boxes/hello/status"
    );
    assert_eq!(asked.body["metadata"]["uid"], "box-uid");
    assert_eq!(asked.body["metadata"]["resourceVersion"], "7");
    assert_eq!(memory(&cx).box_version, Some(8));
}

/// The answer to a read of the Box before its pod is made.
async fn created_after_reading(live: Value) -> (Result<Outcome, Error>, Vec<Asked>) {
    let (cx, log) = context(vec![(200, live), (201, its_pod())]);
    let outcome = apply(&cx, &world(), &creation()).await;
    let asked = log.lock().unwrap().clone();
    (outcome, asked)
}

fn live_box(resource_version: &str) -> Value {
    json!({
        "metadata": {"name": "hello", "uid": "box-uid", "resourceVersion": resource_version},
        "spec": {"image": "x"},
    })
}

#[tokio::test]
async fn a_box_that_this_process_did_not_hold_is_read_before_its_pod_is_made() {
    let (outcome, asked) = created_after_reading(live_box("7")).await;
    assert_eq!(outcome.unwrap(), Outcome::Done);
    let methods: Vec<_> = asked.iter().map(|asked| asked.method.as_str()).collect();
    assert_eq!(methods, ["GET", "POST"]);
}

#[tokio::test]
async fn no_pod_is_made_for_a_box_that_has_changed_since() {
    let (outcome, asked) = created_after_reading(live_box("8")).await;
    assert_eq!(outcome.unwrap(), Outcome::Outdated);
    assert_eq!(asked.len(), 1, "{asked:?}");
}
