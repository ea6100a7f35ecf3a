//! An API server for tests that gives prepared answers and keeps what it was asked.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use boxes_lifecycle::{BoxView, PodView};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::runtime::reflector;
use serde_json::{Value, json};
use tokio::sync::SetOnce;
use tower_test::mock;

use crate::announce::Announcer;
use crate::cache::CachedBox;
use crate::context::Context;
use crate::memory::Memories;
use crate::metrics::{EventCounts, Metrics};
use crate::queue::Queue;
use crate::supervision::Supervision;
use crate::traces::Traces;

/// A request that was made.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub method: String,
    pub path: String,
    pub body: Value,
}

/// What was asked so far.
pub(crate) type Log = Arc<Mutex<Vec<Asked>>>;

/// A context whose API server gives these answers, one after the other, and then none.
pub(crate) fn context(answers: Vec<(u16, Value)>) -> (Context, Log) {
    let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
    let log = Log::default();
    let asked = log.clone();
    tokio::spawn(async move {
        for (code, answer) in answers {
            let Some((request, send)) = handle.next_request().await else {
                return;
            };
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            asked.lock().unwrap().push(Asked {
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            });
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            send.send_response(Response::builder().status(code).body(body).unwrap());
        }
        // Never answer, never hang up.
        let _kept = handle.next_request().await;
        std::future::pending::<()>().await;
    });
    let client = Client::new(service, "default");
    let (boxes, _) = reflector::store::<CachedBox>();
    let (pods, _) = reflector::store::<PodView>();
    let cx = Context {
        saves_output: false,
        announcer: Announcer::start(client.clone(), "test".to_owned(), EventCounts::default()),
        traces: Traces::none(),
        supervision: Supervision::none(),
        client,
        pods,
        boxes,
        memories: Memories::default(),
        metrics: Arc::new(Metrics::new()),
        queue: Queue::new(),
        boxes_listed: SetOnce::new(),
        pods_listed: SetOnce::new(),
        ready: AtomicBool::new(false),
    };
    (cx, log)
}

/// The API server's `Status` for a failure about the object `name`.
pub(crate) fn failure(code: u16, reason: &str, name: &str) -> (u16, Value) {
    let details = json!({"name": name, "kind": "pods"});
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": format!("{reason} of {name}"), "reason": reason, "code": code, "details": details,
    });
    (code, status)
}

/// A Box named `hello` whose command was asked to run and whose record is this.
pub(crate) fn a_box(status: &Value) -> BoxView {
    serde_json::from_value(json!({
        "metadata": {
            "name": "hello", "namespace": "here", "uid": "box-uid", "resourceVersion": "7",
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["boxes.run/record", "example.org/other"],
        },
        "spec": {"image": "busybox", "command": ["true"]},
        "status": status,
    }))
    .unwrap()
}

/// The pod of that Box, bound and running.
pub(crate) fn its_pod() -> Value {
    json!({
        "metadata": {
            "name": "hello", "namespace": "here", "uid": "pod-uid", "resourceVersion": "9",
            "labels": {"boxes.run/box-uid": "box-uid"},
            "finalizers": ["boxes.run/evidence", "example.org/other"],
            "ownerReferences": [{
                "apiVersion": "boxes.run/v1alpha1", "kind": "Box", "name": "hello",
                "uid": "box-uid", "controller": true,
            }],
        },
        "spec": {"nodeName": "node", "containers": [{"name": "box"}], "activeDeadlineSeconds": 2_147_483_647},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "box", "containerID": "x", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }]},
    })
}
