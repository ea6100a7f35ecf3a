//! What is asked of the API server, and what its answers come to.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock;

use super::owner::{Owner, owner};
use super::release::release;
use super::sweep::{Absent, pass};
use crate::archive::{Archive, Label, Uid};

type Log = Arc<Mutex<Vec<(String, Value)>>>;

/// A client whose API server gives these answers, one after the other, and keeps what was asked.
fn client(answers: Vec<(u16, Value)>) -> (Client, Log) {
    let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
    let log = Log::default();
    let asked = log.clone();
    tokio::spawn(async move {
        for (code, answer) in answers {
            let (request, send) = handle.next_request().await.unwrap();
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let line = format!("{} {}", parts.method, parts.uri.path());
            asked.lock().unwrap().push((line, body));
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            send.send_response(Response::builder().status(code).body(body).unwrap());
        }
    });
    (Client::new(service, "default"), log)
}

fn pod(uid: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "namespace": "ns", "name": "p", "uid": uid, "resourceVersion": "7", "finalizers": finalizers,
    }})
}

fn failure(code: u16, reason: &str, name: &str) -> (u16, Value) {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no",
        "reason": reason, "code": code, "details": {"name": name}});
    (code, status)
}

const BOTH: [&str; 2] = ["boxes.run/evidence", "boxes.run/output"];

async fn released(answers: Vec<(u16, Value)>) -> (bool, Vec<(String, Value)>) {
    let (client, log) = client(answers);
    let held: Pod = serde_json::from_value(pod("u", &BOTH)).unwrap();
    let done = release(&client, &held, None).await.is_ok();
    let asked = log.lock().unwrap().clone();
    (done, asked)
}

#[tokio::test]
async fn a_pod_is_let_go_in_one_patch_of_what_it_is_now() {
    let now = pod("u", &["boxes.run/output", "example.org/new"]);
    let (done, asked) = released(vec![(200, now.clone()), (200, now)]).await;
    assert!(done);
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].0, "PATCH /api/v1/namespaces/ns/pods/p");
    assert_eq!(
        asked[1].1,
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["example.org/new"]}}),
    );
}

#[rstest::rstest]
#[case(failure(404, "NotFound", "p"))]
#[case((200, pod("another", &BOTH)))]
#[case((200, pod("u", &["boxes.run/evidence"])))]
#[tokio::test]
async fn what_is_not_held_is_left_alone(#[case] answer: (u16, Value)) {
    let (done, asked) = released(vec![answer]).await;
    assert_eq!((done, asked.len()), (true, 1));
}

#[rstest::rstest]
#[case(failure(409, "Conflict", "p"), false)]
#[case(failure(403, "Forbidden", "p"), false)]
#[case(failure(500, "InternalError", "p"), false)]
#[case(failure(404, "NotFound", "p"), true)]
#[tokio::test]
async fn a_patch_that_is_refused_is_tried_again(#[case] answer: (u16, Value), #[case] over: bool) {
    let (done, _) = released(vec![(200, pod("u", &BOTH)), answer]).await;
    assert_eq!(done, over);
}

fn object(uid: &str, deleting: bool) -> (u16, Value) {
    let mut object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": "hello", "uid": uid}});
    if deleting {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-30T19:00:00Z");
    }
    (200, object)
}

#[rstest::rstest]
#[case(vec![object("u", false), object("ns", false)], Some(Owner::Wanted))]
#[case(vec![object("u", true)], Some(Owner::Leaving))]
#[case(vec![object("u", false), object("ns", true)], Some(Owner::Leaving))]
#[case(vec![object("another", false)], Some(Owner::Gone))]
#[case(vec![failure(404, "NotFound", "hello")], Some(Owner::Gone))]
#[case(vec![failure(404, "NotFound", "")], None)]
#[case(vec![failure(404, "NotFound", "boxes.boxes.run")], None)]
#[case(vec![failure(403, "Forbidden", "hello")], None)]
#[case(vec![failure(503, "ServiceUnavailable", "")], None)]
#[case(vec![object("u", false), failure(404, "NotFound", "")], None)]
#[tokio::test]
async fn only_a_typed_answer_says_that_nobody_wants_it(
    #[case] answers: Vec<(u16, Value)>,
    #[case] expected: Option<Owner>,
) {
    let (client, _) = client(answers);
    assert_eq!(owner(&client, &label()).await.ok(), expected);
}

fn label() -> Label {
    Label {
        uid: Uid::parse("u").unwrap(),
        namespace: "ns".to_owned(),
        name: "hello".to_owned(),
    }
}

#[tokio::test]
async fn an_archive_of_another_cluster_is_not_swept() {
    let shared = Archive::over(Arc::new(object_store::memory::InMemory::new()));
    let of = |uid| shared.clone().of_cluster(Uid::parse(uid).unwrap());
    of("theirs").claim().await.unwrap();
    shared.put_label(&label()).await.unwrap();
    let (client, log) = client(vec![]);
    let mut absent = Absent::default();
    assert!(pass(&client, &of("ours"), &mut absent).await.is_err());
    assert_eq!(*log.lock().unwrap(), []);
    assert_eq!(shared.boxes().await.unwrap(), [label().uid]);
}
