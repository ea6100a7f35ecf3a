//! A front and the server behind it that has the archive.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use boxes_program::Health as _;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::super::certificate::{Files, Serving};
use super::super::fake::{a_box, run_of};
use super::super::front_proxy::FRONT;
use super::super::health::Health;
use super::super::test_certificates::{Authority, Kind};
use super::super::tls;
use super::client::{Answer, Client};
use super::server::{TestServer, log_path};
use crate::archive::{Error, Stream};

const ANN: [(&str, &str); 1] = [("X-Remote-User", "ann")];

/// Both, and the front's certificate.
pub(super) struct Fronted {
    pub(super) reader: TestServer,
    pub(super) front: TestServer,
    pub(super) secret: TempDir,
    _secret_of_reader: TempDir,
}

impl Fronted {
    pub(super) async fn start() -> Self {
        let (secret, of_reader) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ca = Authority::new("reader CA");
        ca.write(secret.path(), FRONT, Kind::Client);
        let reader = TestServer::start_reader(ca, of_reader.path()).await;
        let front = TestServer::start_front(reader.address.port(), secret.path()).await;
        reader.cluster.put("ns", "b", a_box("one"));
        Self {
            reader,
            front,
            secret,
            _secret_of_reader: of_reader,
        }
    }

    async fn log(&self, query: &str) -> Answer {
        self.front.log("b", query).await
    }
}

fn is_ready(server: &TestServer) -> bool {
    let (cx, (_, stopping)) = (server.cx.clone(), watch::channel(false));
    Health { cx, stopping }.problem().is_none()
}

async fn until(what: impl Fn() -> bool) {
    let holds = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let held = tokio::time::timeout(Duration::from_secs(30), holds).await;
    held.expect("it never happened");
}

#[tokio::test]
async fn an_answer_is_as_it_would_be_without_a_front() {
    let it = Fronted::start().await;
    let run = run_of("one");
    let bytes: Vec<u8> = (0..=255).collect();
    it.reader.archive.write(&run, Stream::Stdout, &bytes, true);
    it.reader.archive.gap(&run);
    it.reader.archive.line(&run, "last");
    it.reader.archive.end(&run);
    for two in [false, true] {
        let proxy = Some(it.front.proxy());
        let mut client = Client::connect(it.front.address, &it.front.root, proxy, two).await;
        let mut answer = client.get(&log_path("ns", "b", ""), &ANN).await;
        assert_eq!(answer.code, StatusCode::OK);
        assert_eq!(
            answer.bytes().await,
            [&bytes[..], b"\n", b"last\n"].concat()
        );
        for (name, value) in [
            ("content-type", "text/plain"),
            ("cache-control", "no-store"),
            ("x-boxes-uid", "one"),
            ("x-boxes-from", "0"),
            ("x-boxes-output", "Partial"),
            ("x-boxes-next", "3"),
            ("x-boxes-gaps", "1"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        assert!(answer.header("warning").unwrap().contains("missing"));
        assert_eq!(answer.trailers.len(), 2);
    }
    until(|| it.front.cx.slots.taken() == 0).await;
}

#[tokio::test]
async fn the_query_is_passed_on() {
    let it = Fronted::start().await;
    let run = run_of("one");
    for line in ["one", "two", "three"] {
        it.reader.archive.line(&run, line);
    }
    it.reader.archive.end(&run);
    assert_eq!(it.log("tailLines=1").await.text().await, "three\n");
    let on = "uid=one&from=1&skipBytes=2";
    assert_eq!(it.log(on).await.text().await, "o\nthree\n");
    let wrong = it.log("uid=two").await;
    assert_eq!(wrong.code, StatusCode::CONFLICT);
}

#[tokio::test]
async fn lines_are_seen_as_they_are_written() {
    let it = Fronted::start().await;
    let run = run_of("one");
    let mut answer = it.log("follow=true").await;
    for line in ["one", "two", "three"] {
        it.reader.archive.line(&run, line);
        assert_eq!(answer.piece().await.unwrap(), format!("{line}\n"));
    }
    it.reader.archive.end(&run);
    assert_eq!(answer.text().await, "");
    assert_eq!(answer.header("x-boxes-next"), Some("3"));
    assert_eq!(answer.header("x-boxes-end"), Some("Saved"));
}

#[tokio::test]
async fn what_the_reader_refuses_is_refused_in_its_words() {
    let it = Fronted::start().await;
    let mut none = it.front.log("none", "").await;
    assert_eq!(none.code, StatusCode::NOT_FOUND);
    assert_eq!(none.json().await["details"]["name"], "none");
    let message = "down".to_owned();
    it.reader.archive.fail(Some(Error::Unavailable { message }));
    let mut down = it.log("").await;
    assert_eq!(down.code, StatusCode::SERVICE_UNAVAILABLE);
    let said = down.json().await;
    assert_eq!(said["message"], "the archive is not available");
    assert!(is_ready(&it.front) && is_ready(&it.reader));
    let text = it.front.cx.metrics.text(0).unwrap();
    assert!(text.contains("requests_total{code=\"503\"} 1"), "{text}");
}

#[tokio::test]
async fn what_is_cut_off_behind_it_is_cut_off() {
    for two in [false, true] {
        let it = Fronted::start().await;
        it.reader.archive.line(&run_of("one"), "one");
        let proxy = Some(it.front.proxy());
        let mut client = Client::connect(it.front.address, &it.front.root, proxy, two).await;
        let path = log_path("ns", "b", "follow=true");
        let mut answer = client.get(&path, &ANN).await;
        it.reader.cluster.delete("ns", "b");
        assert_eq!(answer.rest().await, (b"one\n".to_vec(), false));
        let text = it.front.cx.metrics.text(0).unwrap();
        assert!(text.contains("cut_off_total{class=\"reader\"} 1"), "{text}");
    }
}

#[tokio::test]
async fn a_reader_that_stops_cuts_off() {
    let it = Fronted::start().await;
    it.reader.archive.line(&run_of("one"), "one");
    let mut answer = it.log("follow=true").await;
    assert_eq!(answer.piece().await.unwrap(), "one\n");
    it.reader.stop.send_replace(true);
    assert_eq!(answer.rest().await, (Vec::new(), false));
    until(|| it.front.cx.slots.taken() == 0).await;
}

#[tokio::test]
async fn a_client_that_goes_away_frees_everything() {
    let it = Fronted::start().await;
    for two in [false, true] {
        let proxy = Some(it.front.proxy());
        let mut client = Client::connect(it.front.address, &it.front.root, proxy, two).await;
        let path = log_path("ns", "b", "follow=true");
        let mut answer = client.get(&path, &ANN).await;
        it.reader.archive.line(&run_of("one"), "one");
        assert!(answer.piece().await.is_some());
        assert_eq!(
            (it.front.cx.slots.taken(), it.reader.cx.slots.taken()),
            (1, 1)
        );
        drop(answer);
        drop(client);
        until(|| it.front.cx.slots.taken() == 0 && it.reader.cx.slots.taken() == 0).await;
        until(|| it.reader.archive.reads() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_little() {
    let it = Fronted::start().await;
    let big = vec![b'x'; 64 * 1024];
    for _ in 0..600 {
        it.reader
            .archive
            .write(&run_of("one"), Stream::Stdout, &big, true);
    }
    let mut answer = it.log("").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(it.reader.archive.batches() < 120);
    assert_eq!(answer.bytes().await.len(), 600 * (64 * 1024 + 1));
}

#[tokio::test]
async fn without_its_reader_it_is_ready_and_says_so_to_each_request() {
    let it = Fronted::start().await;
    it.reader.stop.send_replace(true);
    until(|| std::net::TcpStream::connect(it.reader.address).is_err()).await;
    let mut answer = it.log("").await;
    assert_eq!(answer.code, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.header("retry-after"), Some("1"));
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the archive cannot be read now: its reader gives no answer",
        "reason": "ServiceUnavailable", "code": 503, "details": {"retryAfterSeconds": 1},
    });
    assert_eq!(answer.json().await, expected);
    assert!(is_ready(&it.front));
    let discovery = it.front.get("/apis/output.boxes.run/v1alpha1").await;
    assert_eq!(discovery.code, StatusCode::OK);
    assert_eq!(it.front.cx.slots.taken(), 0);
}

/// A server in the reader's place whose answers end without trailers.
async fn curt() -> (SocketAddr, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    Authority::new("reader CA").write(folder.path(), "localhost", Kind::ServerOnly);
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    let serving = Serving::from_files(files).await.unwrap();
    let tls = TlsAcceptor::from(std::sync::Arc::new(tls::config(serving).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let stream = tls.accept(listener.accept().await.unwrap().0).await;
        let service = service_fn(async |_: Request<Incoming>| {
            let half = async { Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"half"))) };
            let pause = tokio::time::sleep(Duration::from_millis(100));
            let end = pause.map(|()| stream::empty()).flatten_stream();
            let body = StreamBody::new(stream::once(half).chain(end));
            Ok::<_, Infallible>(Response::new(body))
        });
        let server = auto::Builder::new(TokioExecutor::new());
        let stream = TokioIo::new(stream.unwrap());
        server.serve_connection(stream, service).await
    });
    (address, folder)
}

#[tokio::test]
async fn an_end_without_trailers_is_a_cut() {
    let (address, secret) = curt().await;
    let front = TestServer::start_front(address.port(), secret.path()).await;
    let mut answer = front.log("b", "").await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(answer.rest().await, (b"half".to_vec(), false));
}
