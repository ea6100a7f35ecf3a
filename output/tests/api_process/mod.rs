//! A made-up API server, and the binary as a process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::stream;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::api_client::{Answer, ask, ask_plain};
use crate::test_certificates::{Authority, Kind};

const PROXY: &str = "front-proxy-client";

/// What the log API talks to: an API server with one Box `b` in `ns` that `ann` may read, and a
/// folder for the archive.
pub(crate) struct Cluster {
    folder: TempDir,
    ca: Authority,
    root: CertificateDer<'static>,
    between: Authority,
}

/// Common name of a front's certificate.
const FRONT: &str = "boxes-log-api";

impl Cluster {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = Authority::new("request header CA");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = routes(&ca);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).unwrap();
        let root = serving(&folder);
        let between = Authority::new("between front and reader");
        for (secret, name, kind) in [
            ("front", FRONT, Kind::Client),
            ("reader", "localhost", Kind::ServerOnly),
        ] {
            let secret = folder.path().join(secret);
            std::fs::create_dir(&secret).unwrap();
            between.write(&secret, name, kind);
        }
        Self {
            folder,
            ca,
            root,
            between,
        }
    }

    pub(crate) fn archive_url(&self) -> String {
        format!("file://{}", self.path("archive").display())
    }

    pub(crate) fn make_archive(&self) {
        std::fs::create_dir(self.path("archive")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, flag: &str, name: &str) -> String {
        format!("--{flag}={}", self.path(name).display())
    }
}

/// Writes a serving certificate and its key.
fn serving(folder: &TempDir) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.path().join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(folder.path().join("tls.key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

fn routes(ca: &Authority) -> Router {
    let map = Arc::new(config_map(&ca.pem()));
    let maps = move |RawQuery(query): RawQuery| async move { config_maps(&map, &query.unwrap()) };
    Router::new()
        .route("/api/v1/namespaces/kube-system/configmaps", get(maps))
        .route(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            post(review),
        )
        .route(
            "/apis/boxes.run/v1alpha1/namespaces/{ns}/boxes/{name}",
            get(a_box),
        )
}

fn config_map(ca: &str) -> Value {
    json!({
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system", "resourceVersion": "1"},
        "data": {
            "requestheader-client-ca-file": ca,
            "requestheader-allowed-names": format!("[{PROXY:?}]"),
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        },
    })
}

/// The built-in Role for this lets one read and watch this one `ConfigMap`, by name.
fn config_maps(map: &Value, query: &str) -> Response {
    assert!(
        query.contains("fieldSelector=metadata.name%3Dextension-apiserver-authentication"),
        "{query}"
    );
    if query.contains("watch=true") {
        let silence = stream::pending::<Result<Vec<u8>, std::io::Error>>();
        return Body::from_stream(silence).into_response();
    }
    Json(json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [map],
    }))
    .into_response()
}

async fn review(Json(mut review): Json<Value>) -> Json<Value> {
    let wanted = json!({
        "group": "output.boxes.run", "version": "v1alpha1", "resource": "boxes", "subresource": "log",
        "verb": "get", "namespace": "ns", "name": review["spec"]["resourceAttributes"]["name"],
    });
    let spec = &review["spec"];
    let allowed = spec["user"] == "ann" && spec["resourceAttributes"] == wanted;
    review["status"] = json!({"allowed": allowed});
    Json(review)
}

async fn a_box(Path((_, name)): Path<(String, String)>) -> Response {
    if name != "b" {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "not found", "reason": "NotFound", "code": 404,
            "details": {"name": name, "group": "boxes.run", "kind": "boxes"},
        });
        return (StatusCode::NOT_FOUND, Json(status)).into_response();
    }
    let status =
        json!({"state": "Running", "run": {"number": 1, "pod": {"name": "b", "uid": "pod-uid"}}});
    let metadata = json!({"name": "b", "namespace": "ns", "uid": "box-uid"});
    Json(json!({"metadata": metadata, "spec": {}, "status": status})).into_response()
}

/// The binary, running.
pub(crate) struct LogApi<'a> {
    cluster: &'a Cluster,
    child: Child,
    lines: Receiver<String>,
    address: SocketAddr,
    health: SocketAddr,
}

impl<'a> LogApi<'a> {
    /// With the archive, behind the API server.
    pub(crate) async fn start(cluster: &'a Cluster) -> Self {
        let args = [
            cluster.file("tls-cert", "tls.crt"),
            cluster.file("tls-key", "tls.key"),
            format!("--archive={}", cluster.archive_url()),
        ];
        Self::start_with(cluster, "127.0.0.1:0", &args).await
    }

    /// With the archive, behind a front, at this address.
    pub(crate) async fn start_reader(cluster: &'a Cluster, listen: &str) -> Self {
        let args = [
            cluster.file("tls-cert", "reader/tls.crt"),
            cluster.file("tls-key", "reader/tls.key"),
            cluster.file("front-ca", "reader/ca.crt"),
            format!("--archive={}", cluster.archive_url()),
        ];
        Self::start_with(cluster, listen, &args).await
    }

    /// In front of a reader at this address.
    pub(crate) async fn start_front(cluster: &'a Cluster, reader: SocketAddr) -> Self {
        let args = [
            cluster.file("tls-cert", "tls.crt"),
            cluster.file("tls-key", "tls.key"),
            format!("--reader=https://localhost:{}", reader.port()),
            cluster.file("reader-ca", "front/ca.crt"),
            cluster.file("reader-cert", "front/tls.crt"),
            cluster.file("reader-key", "front/tls.key"),
        ];
        Self::start_with(cluster, "127.0.0.1:0", &args).await
    }

    async fn start_with(cluster: &'a Cluster, listen: &str, args: &[String]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_boxes-log-api"))
            .env("KUBECONFIG", cluster.path("kubeconfig"))
            .args(args)
            .args(["--listen", listen, "--health-listen=127.0.0.1:0"])
            .arg("--log-format=json")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let started = wait_for(&lines, "the log API has started");
        let address = |name: &str| started[name].as_str().unwrap().parse().unwrap();
        let (listen, health) = (address("listen"), address("health"));
        let api = Self {
            cluster,
            child,
            lines,
            address: listen,
            health,
        };
        api.is_ready().await;
        api
    }

    /// Waits until it says so.
    pub(crate) async fn is_ready(&self) {
        for _ in 0..500 {
            if ask_plain(self.health, "/readyz").await.code() == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not ready in time");
    }

    pub(crate) async fn metrics(&self) -> String {
        ask_plain(self.health, "/metrics").await.text().await
    }

    /// Asks as the API server does for this user.
    pub(crate) async fn get(&self, path: &str, user: &str) -> Answer {
        let identity = self.cluster.ca.sign(PROXY, Kind::Client);
        ask(self.address, &self.cluster.root, Some(identity), path, user).await
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks as a front does for this user.
    pub(crate) async fn get_as_front(&self, path: &str, user: &str) -> Answer {
        let between = &self.cluster.between;
        let identity = between.sign(FRONT, Kind::Client);
        ask(self.address, &between.der(), Some(identity), path, user).await
    }

    /// Asks a reader without the certificate of its front.
    pub(crate) async fn get_past_the_front(&self, path: &str, user: &str) -> Answer {
        let (root, identity) = (
            self.cluster.between.der(),
            self.cluster.ca.sign(FRONT, Kind::Client),
        );
        ask(self.address, &root, Some(identity), path, user).await
    }

    /// Asks without a certificate.
    pub(crate) async fn get_as_stranger(&self, path: &str, user: &str) -> Answer {
        ask(self.address, &self.cluster.root, None, path, user).await
    }

    /// Kills it without a word, and gives what it logged since it started.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }
}

impl Drop for LogApi<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line that says this.
fn wait_for(lines: &Receiver<String>, message: &str) -> Value {
    loop {
        let line = lines.recv_timeout(Duration::from_secs(10)).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["message"] == message {
            return line;
        }
    }
}
