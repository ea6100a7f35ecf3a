//! What is asked of the API server, and what its answers come to.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use boxes_program::{Election, Health as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock;

use super::cluster::{claim, identity};
use super::health::Health;
use super::owner::{Owner, owner};
use super::release::release;
use super::sweep::{Absent, SILENT, is_abandoned, pass, turn};
use crate::archive::{Archive, Label, Options, Uid};

pub(super) type Log = Arc<Mutex<Vec<(String, Value)>>>;

/// A client whose API server gives these answers, one after the other, and keeps what was asked. Then
/// it gives none.
pub(super) fn client(answers: Vec<(u16, Value)>) -> (Client, Log) {
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
        std::future::pending::<()>().await;
    });
    (Client::new(service, "default"), log)
}

fn pod(uid: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "namespace": "ns", "name": "p", "uid": uid, "resourceVersion": "7", "finalizers": finalizers,
    }})
}

pub(super) fn failure(code: u16, reason: &str, name: &str) -> (u16, Value) {
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
#[case(failure(404, "NotFound", ""), false)]
#[case(failure(404, "NotFound", "p"), true)]
#[tokio::test]
async fn a_patch_that_is_refused_is_tried_again(#[case] answer: (u16, Value), #[case] over: bool) {
    let (done, _) = released(vec![(200, pod("u", &BOTH)), answer]).await;
    assert_eq!(done, over);
}

pub(super) fn object(uid: &str, deleting: bool) -> (u16, Value) {
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

#[tokio::test]
async fn an_answer_that_names_no_pod_says_nothing() {
    let (done, _) = released(vec![failure(404, "NotFound", "")]).await;
    assert!(!done);
}

fn label() -> Label {
    Label {
        uid: Uid::parse("u").unwrap(),
        namespace: "ns".to_owned(),
        name: "hello".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_known_by_what_outlives_everything_in_it() {
    let (client, log) = client(vec![
        failure(403, "Forbidden", ""),
        object("cluster", false),
    ]);
    assert_eq!(identity(&client).await.as_str(), "cluster");
    assert_eq!(
        log.lock().unwrap()[1].0,
        "GET /api/v1/namespaces/kube-system"
    );
}

#[tokio::test(start_paused = true)]
async fn with_an_archive_of_another_cluster_it_is_not_ready() {
    let shared = Archive::over(Arc::new(object_store::memory::InMemory::new()));
    let of = |uid| shared.clone().of_cluster(Uid::parse(uid).unwrap());
    of("theirs").claim().await.unwrap();
    for (uid, ready) in [("theirs", true), ("ours", false)] {
        let health = Arc::new(Health::default());
        health.set_ready();
        let claiming = claim(of(uid), health.clone());
        let ended = tokio::time::timeout(Duration::from_mins(5), claiming).await;
        assert_eq!((ended.is_ok(), health.problem().is_none()), (ready, ready));
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

fn lease(holder: &str) -> (u16, Value) {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sweeper", "resourceVersion": "7"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 300, "leaseTransitions": 3}});
    (200, lease)
}

#[rstest::rstest]
#[case::held_by_another(vec![lease("node-2")], 1)]
#[case::not_told(vec![failure(500, "InternalError", "sweeper")], 1)]
#[case::taken_at_the_same_time(vec![lease(""), failure(409, "Conflict", "sweeper")], 2)]
#[case::held(vec![lease("node-1"), lease("node-1"), nothing_listed(), object("u", false)], 4)]
#[tokio::test(start_paused = true)]
async fn one_collector_sweeps(#[case] answers: Vec<(u16, Value)>, #[case] asked: usize) {
    let archive = Archive::over(Arc::new(object_store::memory::InMemory::new()));
    archive.put_label(&label()).await.unwrap();
    let (client, log) = client(answers);
    let mut election = Election::new(client.clone(), "ns", "sweeper", "node-1", SILENT);
    let mut absent = Absent::default();
    let _ = turn(&client, &archive, &mut absent, &mut election).await;
    assert_eq!(log.lock().unwrap().len(), asked);
}

fn nothing_listed() -> (u16, Value) {
    let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": {}, "items": []});
    (200, list)
}

#[tokio::test]
async fn a_label_that_leads_nowhere_does_not_stop_the_sweep() {
    let archive = Archive::over(Arc::new(object_store::memory::InMemory::new()));
    for (uid, name) in [
        ("a", "b/c"),
        ("b", ""),
        ("c", "?watch=true"),
        ("u", "hello"),
    ] {
        let (uid, name) = (Uid::parse(uid).unwrap(), name.to_owned());
        let label = Label {
            uid,
            name,
            ..label()
        };
        archive.put_label(&label).await.unwrap();
    }
    let gone = failure(404, "NotFound", "hello");
    let (client, log) = client(vec![nothing_listed(), gone]);
    let mut absent = Absent::default();
    pass(&client, &archive, &mut absent).await.unwrap();
    let asked = log.lock().unwrap().clone();
    assert_eq!(
        asked[1].0,
        "GET /apis/boxes.run/v1alpha1/namespaces/ns/boxes/hello"
    );
    assert_eq!(archive.boxes().await.unwrap().len(), 4);
}

#[rstest::rstest]
#[case(0, false)]
#[case(23, false)]
#[case(25, true)]
#[tokio::test]
async fn what_nobody_owns_is_abandoned_after_a_day(#[case] hours: u64, #[case] abandoned: bool) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("runs/u/p/0");
    std::fs::create_dir_all(&run).unwrap();
    let file = std::fs::File::create(run.join("00000000000000000007.seg")).unwrap();
    let written = SystemTime::now() - Duration::from_hours(hours);
    file.set_modified(written).unwrap();
    let url = format!("file://{}", folder.path().display());
    let archive = Archive::open(&url, &Options::default()).unwrap();
    assert_eq!(
        is_abandoned(&archive, &label().uid).await.unwrap(),
        abandoned
    );
}
