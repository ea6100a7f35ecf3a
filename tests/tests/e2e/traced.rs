//! One trace covers a run from its creation until nothing of it is left, and is sent to whoever the
//! controller is told of.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Of;
use axum::routing::post;
use boxes_tests::harness::{
    HistoryType, LiveBox, PATIENCE, Reason, State, World, a_box, e2e_alone,
};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::help::UNTIL_TOLD;

/// What only the receiver may learn.
const TOKEN: &str = "a-token-for-the-receiver";

/// A receiver of OTLP on this machine.
#[derive(Clone)]
struct Receiver {
    spans: Arc<Mutex<Vec<Span>>>,
    news: watch::Sender<()>,
}

impl Receiver {
    /// Starts it; its address comes with it.
    async fn start() -> Result<(Self, String)> {
        let it = Self {
            spans: Arc::default(),
            news: watch::channel(()).0,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let routes = Router::new()
            .route("/v1/traces", post(take))
            .with_state(it.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok((it, url))
    }

    /// The spans of a Box, in the order in which they came.
    fn spans_of(&self, uid: &str) -> Result<Vec<Span>> {
        let id = u128::from_str_radix(&uid.replace('-', ""), 16)?.to_be_bytes();
        let all = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.iter().filter(|it| it.trace_id == id).cloned().collect())
    }

    /// The spans of a Box, once it has some.
    async fn gets(&self, it: &LiveBox) -> Result<Vec<Span>> {
        let mut news = self.news.subscribe();
        let search = async {
            loop {
                let spans = self.spans_of(it.uid())?;
                if !spans.is_empty() {
                    return Ok(spans);
                }
                news.changed().await?;
            }
        };
        let found = tokio::time::timeout(PATIENCE, search).await;
        found.with_context(|| format!("no trace of {} came", it.uid()))?
    }
}

async fn take(Of(it): Of<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let authorization = headers
        .get("authorization")
        .map(http::HeaderValue::as_bytes);
    if authorization != Some(format!("Bearer {TOKEN}").as_bytes()) {
        return StatusCode::UNAUTHORIZED;
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    let scopes = request
        .resource_spans
        .into_iter()
        .flat_map(|it| it.scope_spans);
    let mut all = it.spans.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(scopes.flat_map(|it| it.spans));
    it.news.send_replace(());
    StatusCode::OK
}

fn variables(url: String) -> Vec<(String, String)> {
    let headers = format!("authorization=Bearer%20{TOKEN}");
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url),
        ("OTEL_EXPORTER_OTLP_HEADERS".to_owned(), headers),
    ]
}

fn text(span: &Span, key: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|it| it.key == key)?;
    match attribute.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

fn named<'a>(spans: &'a [Span], name: &str) -> Result<&'a Span> {
    let mut all = spans.iter().filter(|span| span.name == name);
    let found = all
        .next()
        .with_context(|| format!("no span {name} in {spans:#?}"))?;
    ensure!(all.next().is_none(), "a second span {name} in {spans:#?}");
    Ok(found)
}

fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}

/// It is whole: one root, which covers its children.
fn assert_whole(spans: &[Span]) -> Result<()> {
    let root = named(spans, "box")?;
    ensure!(root.parent_span_id.is_empty(), "{root:#?}");
    for span in spans.iter().filter(|span| span.name != "box") {
        ensure!(span.parent_span_id == root.span_id, "{span:#?}");
        let inside = root.start_time_unix_nano <= span.start_time_unix_nano
            && span.start_time_unix_nano <= span.end_time_unix_nano
            && span.end_time_unix_nano <= root.end_time_unix_nano;
        ensure!(inside, "{span:#?} of {root:#?}");
    }
    Ok(())
}

/// The whole life of one Box, and what was sent of it.
async fn a_life(world: &World, receiver: &Receiver, name: &str) -> Result<(LiveBox, Vec<Span>)> {
    let it = a_box(name).shell("echo hi; exit 3").create(world).await?;
    it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
    it.is_cleaned_up().await?;
    let spans = receiver.gets(&it).await?;
    Ok((it, spans))
}

#[tokio::test]
async fn a_run_is_one_trace_and_a_controller_that_comes_later_sends_no_other() {
    e2e_alone(async |world| {
        let (receiver, url) = Receiver::start().await?;
        let mut controller = world.host_controller_with(variables(url)).await?;
        let (it, spans) = a_life(world, &receiver, "traced").await?;
        assert_whole(&spans)?;

        let object = it.get().await?;
        let status = object.status.context("no status")?;
        let run = status.run.context("no run")?;
        let root = named(&spans, "box")?;
        let created = object.metadata.creation_timestamp.context("no creation")?;
        assert_eq!(root.start_time_unix_nano, nanoseconds(created.0));
        let last = status.history.last().context("no history")?;
        assert_eq!(last.type_, HistoryType::CleanedUp.as_str());
        assert_eq!(root.end_time_unix_nano, nanoseconds(last.time.0));
        for name in ["scheduling", "materializing", "running", "deleting"] {
            named(&spans, name)?;
        }
        for (key, expected) in [
            ("k8s.namespace.name", world.namespace()),
            ("box.name", "traced"),
            ("box.uid", it.uid()),
            ("k8s.pod.uid", &run.pod.uid),
            ("k8s.node.name", run.node.as_deref().unwrap_or_default()),
            ("box.exit_code", "3"),
        ] {
            assert_eq!(text(root, key).as_deref(), Some(expected), "{key}");
        }

        let log = controller.log().join("\n");
        assert_eq!(log.matches("traces are exported").count(), 1, "{log}");
        assert!(!log.contains(TOKEN), "{log}");

        controller.kill().await?;
        controller.start()?;
        controller.leads(PATIENCE).await?;
        // By then it has seen the first one, too.
        a_life(world, &receiver, "later").await?;
        assert_eq!(receiver.spans_of(it.uid())?.len(), spans.len());
        controller.stop().await
    })
    .await;
}

#[tokio::test]
async fn a_box_that_is_deleted_while_it_runs_has_its_trace_too() {
    e2e_alone(async |world| {
        let (receiver, url) = Receiver::start().await?;
        let controller = world.host_controller_with(variables(url)).await?;
        let it = a_box("deleted").shell(UNTIL_TOLD).create(world).await?;
        it.is(State::Running).await?;
        it.delete().await?;
        it.is_gone().await?;
        let spans = receiver.gets(&it).await?;
        assert_whole(&spans)?;
        named(&spans, "running")?;
        assert_eq!(
            text(named(&spans, "box")?, "box.state").as_deref(),
            Some("Stopped")
        );
        // Nothing more of it comes.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(receiver.spans_of(it.uid())?.len(), spans.len());
        controller.stop().await
    })
    .await;
}
