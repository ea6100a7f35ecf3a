//! A receiver of traces gets one for each run that is over, and what it does never delays a pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use boxes_lifecycle::{Span, Trace};
use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span as Sent};
use prost::Message;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

use crate::cache::CachedBox;
use crate::context::Context;
use crate::fake::{a_box, context, failure};
use crate::metrics::TraceCounts;
use crate::otlp::Receiver;
use crate::reconcile::reconcile;
use crate::traces::Traces;

/// What a receiver does with a request; with those that it has no answer for, it takes them.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    Hangs,
}

/// A receiver of OTLP.
#[derive(Clone, Default)]
pub(crate) struct Collector {
    answers: Arc<Mutex<Vec<Answer>>>,
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    /// Serves these answers, one after the other.
    async fn start(answers: &[Answer]) -> (Self, Receiver) {
        let it = Self::default();
        it.answers.lock().unwrap().extend(answers.iter().rev());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = at(listener.local_addr().unwrap().port());
        let routes = it.routes();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (it, receiver)
    }

    pub(crate) fn routes(&self) -> Router {
        let routes = Router::new().route("/v1/traces", post(take));
        routes.with_state(self.clone())
    }

    pub(crate) fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        self.requests.lock().unwrap().clone()
    }

    fn resources(&self) -> Vec<ResourceSpans> {
        let all = self.requests().into_iter();
        all.flat_map(|request| request.resource_spans).collect()
    }

    fn spans(&self) -> Vec<Sent> {
        let scopes = self.resources().into_iter().flat_map(|it| it.scope_spans);
        scopes.flat_map(|it| it.spans).collect()
    }
}

async fn take(State(it): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    it.requests.lock().unwrap().push(request);
    let answer = it.answers.lock().unwrap().pop();
    match answer {
        Some(Answer::Status(code)) => StatusCode::from_u16(code).unwrap(),
        Some(Answer::Hangs) => std::future::pending().await,
        None => StatusCode::OK,
    }
}

fn at(port: u16) -> Receiver {
    Receiver {
        endpoint: format!("http://127.0.0.1:{port}/v1/traces")
            .parse()
            .unwrap(),
        timeout: Duration::from_secs(10),
        certificates: None,
    }
}

/// Where nobody listens, as long as the socket is held.
fn nowhere() -> (TcpSocket, Receiver) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, at(port))
}

pub(crate) fn start(receiver: &Receiver) -> (Traces, TraceCounts) {
    let counts = TraceCounts::default();
    let traces = Traces::start(Some(receiver), counts.clone()).unwrap();
    (traces, counts)
}

pub(crate) fn a_trace() -> Trace {
    let root = Span {
        id: [1; 8],
        parent: None,
        name: "box",
        start: Timestamp::UNIX_EPOCH,
        end: Timestamp::UNIX_EPOCH,
        attributes: Vec::new(),
        error: None,
    };
    Trace {
        id: [2; 16],
        spans: vec![root],
    }
}

/// Exported and dropped, once so many were one or the other.
pub(crate) async fn counted(counts: &TraceCounts, count: u64) -> (u64, u64) {
    let now = || (counts.exported.get(), counts.dropped.get());
    let done = async {
        while now().0 + now().1 < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(20), done).await;
    now()
}

/// A record that lacks nothing but to be cleaned up.
fn ended() -> Value {
    let pod = json!({"name": "hello", "uid": "pod-uid"});
    json!({
        "state": "Exited", "reason": "Exit", "exitCode": 3, "evidence": "Observed",
        "run": {
            "number": 1, "pod": pod, "node": "node", "scheduledAt": "2026-01-01T00:00:02Z",
            "startedAt": "2026-01-01T00:00:05Z", "endedAt": "2026-01-01T00:00:09Z",
        },
        "history": [
            {"type": "Created", "time": "2026-01-01T00:00:01Z"},
            {"type": "Scheduled", "time": "2026-01-01T00:00:02Z"},
            {"type": "Started", "time": "2026-01-01T00:00:05Z"},
            {"type": "Exited", "time": "2026-01-01T00:00:09Z"},
        ],
    })
}

/// A pass over a Box whose pod is gone.
async fn pass(cx: &Context, status: &Value, deleted: bool) {
    let mut object = a_box(status);
    object.metadata.uid = Some("5c1f2d3e-4b5a-6978-8796-a5b4c3d2e1f0".to_owned());
    if deleted {
        object.metadata.deletion_timestamp = object.metadata.creation_timestamp.clone();
    }
    let cached = CachedBox::Whole(Box::new(object));
    Box::pin(reconcile(&cached, cx)).await.unwrap();
}

/// A context that exports, whose API server has no pod and takes one write.
fn exporting(receiver: &Receiver) -> (Context, crate::fake::Log) {
    let written =
        json!({"metadata": {"name": "hello", "resourceVersion": "8"}, "spec": {"image": "x"}});
    let (mut cx, log) = context(vec![failure(404, "NotFound", "hello"), (200, written)]);
    cx.traces = Traces::start(Some(receiver), cx.metrics.traces.clone()).unwrap();
    (cx, log)
}

fn value(attributes: &[KeyValue], key: &str) -> Option<Any> {
    let found = attributes.iter().find(|it| it.key == key)?;
    found.value.clone().and_then(|AnyValue { value }| value)
}

fn text(value: &str) -> Any {
    Any::StringValue(value.to_owned())
}

/// Seconds since the Box was made.
fn seconds(nanoseconds: u64) -> i64 {
    let made: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    i64::try_from(nanoseconds / 1_000_000_000).unwrap() - made.as_second()
}

#[tokio::test]
async fn a_run_that_is_cleaned_up_is_exported_as_one_tree() {
    let (collector, receiver) = Collector::start(&[]).await;
    let (cx, log) = exporting(&receiver);
    pass(&cx, &ended(), false).await;
    assert_eq!(counted(&cx.metrics.traces, 1).await, (1, 0));

    let spans: BTreeMap<_, _> = collector
        .spans()
        .into_iter()
        .map(|span| (span.name.clone(), span))
        .collect();
    let names: Vec<_> = spans.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["box", "deleting", "materializing", "running", "scheduling"]
    );
    let root = &spans["box"];
    assert!(root.parent_span_id.is_empty(), "{root:?}");
    for (name, span) in &spans {
        assert_eq!(
            span.trace_id,
            0x5c1f_2d3e_4b5a_6978_8796_a5b4_c3d2_e1f0_u128.to_be_bytes()
        );
        assert!(
            name == "box" || span.parent_span_id == root.span_id,
            "{span:?}"
        );
        let failed = ["box", "running"].contains(&name.as_str());
        let status = span.status.clone().unwrap_or_default();
        assert_eq!(status.code == SpanStatus::Error as i32, failed, "{span:?}");
        assert_eq!(value(&span.attributes, "k8s.node.name"), Some(text("node")));
    }
    assert_eq!(
        value(&root.attributes, "box.exit_code"),
        Some(Any::IntValue(3))
    );
    for (name, start, end) in [
        ("scheduling", 1, 2),
        ("materializing", 2, 5),
        ("running", 5, 9),
    ] {
        let span = &spans[name];
        let length = (
            seconds(span.start_time_unix_nano),
            seconds(span.end_time_unix_nano),
        );
        assert_eq!(length, (start, end), "{name}");
    }
    let resource = collector.resources()[0].resource.clone().unwrap();
    assert_eq!(
        value(&resource.attributes, "service.name"),
        Some(text("boxes-controller"))
    );

    // What was recorded then is no news to the next pass, or to another controller.
    let recorded = log.lock().unwrap()[1].body["status"].clone();
    pass(&cx, &recorded, false).await;
    cx.traces.finish().await;
    assert_eq!(collector.requests().len(), 1);
}

#[tokio::test]
async fn a_box_that_is_deleted_before_it_is_cleaned_up_is_exported_when_it_goes() {
    let (collector, receiver) = Collector::start(&[]).await;
    let (cx, log) = exporting(&receiver);
    pass(&cx, &ended(), true).await;
    assert_eq!(counted(&cx.metrics.traces, 1).await, (1, 0));
    assert_eq!(collector.spans().len(), 5);
    assert_eq!(log.lock().unwrap()[1].method, "PATCH");
}

#[tokio::test]
async fn a_pass_does_not_wait_for_a_receiver_that_hangs() {
    let (collector, mut receiver) = Collector::start(&[Answer::Hangs]).await;
    receiver.timeout = Duration::from_mins(1);
    let (cx, _) = exporting(&receiver);
    let began = Instant::now();
    pass(&cx, &ended(), false).await;
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    let hung = async {
        while collector.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), hung)
        .await
        .unwrap();
    assert_eq!(counted(&cx.metrics.traces, 0).await, (0, 0));
}

#[rstest]
#[case::unavailable(Answer::Status(503))]
#[case::throttling(Answer::Status(429))]
#[tokio::test]
async fn a_receiver_that_asks_for_patience_gets_it(#[case] answer: Answer) {
    let (collector, receiver) = Collector::start(&[answer]).await;
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (1, 0));
    assert_eq!(collector.requests().len(), 2);
}

#[tokio::test]
async fn what_a_receiver_refuses_is_dropped_and_counted() {
    let (_, receiver) = Collector::start(&[Answer::Status(500)]).await;
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (0, 1));
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 2).await, (1, 1));
}

#[tokio::test]
async fn what_a_receiver_does_not_answer_for_is_dropped_and_counted() {
    let (_, mut receiver) = Collector::start(&[Answer::Hangs]).await;
    receiver.timeout = Duration::from_millis(200);
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (0, 1));
}

#[tokio::test]
async fn without_a_receiver_at_the_address_it_is_dropped_and_counted() {
    let (_held, mut receiver) = nowhere();
    receiver.timeout = Duration::from_millis(800);
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (0, 1));
}

#[tokio::test]
async fn too_many_that_wait_are_dropped_and_counted() {
    let (_, receiver) = Collector::start(&[Answer::Hangs]).await;
    let (traces, counts) = start(&receiver);
    for _ in 0..3000 {
        traces.send(|| Some(a_trace()));
    }
    let (exported, dropped) = counted(&counts, 1900).await;
    assert_eq!(exported, 0);
    assert!((1900..=1976).contains(&dropped), "{dropped}");
}

#[tokio::test]
async fn the_end_of_the_process_waits_for_what_is_left() {
    let (collector, receiver) = Collector::start(&[]).await;
    let (traces, counts) = start(&receiver);
    for _ in 0..200 {
        traces.send(|| Some(a_trace()));
    }
    traces.finish().await;
    assert_eq!((counts.exported.get(), counts.dropped.get()), (200, 0));
    assert_eq!(collector.spans().len(), 200);
}

#[tokio::test]
async fn without_a_receiver_no_trace_is_made() {
    Traces::none().send(|| panic!("a trace was made"));
    let traces = Traces::start(None, TraceCounts::default()).unwrap();
    traces.send(|| panic!("a trace was made"));
    traces.finish().await;
}
