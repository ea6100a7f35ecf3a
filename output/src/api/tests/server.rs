//! A server for tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::super::access::Access;
use super::super::certificate::{Files, Serving};
use super::super::context::{Context, Source};
use super::super::fake::{FakeArchive, FakeCluster};
use super::super::feed::Timing;
use super::super::front_proxy::FrontProxy;
use super::super::metrics::Metrics;
use super::super::serve::{self, Limits};
use super::super::slots::Slots;
use super::super::test_certificates::{Authority, Identity, Kind};
use super::super::tls;
use super::super::upstream::Upstream;
use super::client::{Answer, Client};

/// Common name of the API server's client certificate.
pub(super) const PROXY: &str = "front-proxy-client";

/// A running server and everything around it.
pub(super) struct TestServer {
    pub(super) cluster: Arc<FakeCluster>,
    pub(super) archive: FakeArchive,
    pub(super) cx: Arc<Context>,
    pub(super) ca: Authority,
    pub(super) known: watch::Sender<Option<Arc<FrontProxy>>>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) address: SocketAddr,
    pub(super) root: CertificateDer<'static>,
}

/// The `ConfigMap` as kubeadm has it, with this CA.
pub(super) fn config_map(ca: &Authority) -> BTreeMap<String, String> {
    let data = [
        ("requestheader-client-ca-file", ca.pem()),
        ("requestheader-allowed-names", format!("[{PROXY:?}]")),
        (
            "requestheader-username-headers",
            r#"["X-Remote-User"]"#.into(),
        ),
        ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#.into()),
        (
            "requestheader-group-headers",
            r#"["X-Remote-Group"]"#.into(),
        ),
        (
            "requestheader-extra-headers-prefix",
            r#"["X-Remote-Extra-"]"#.into(),
        ),
    ];
    data.map(|(key, value)| (key.to_owned(), value)).into()
}

pub(super) fn front_proxy(data: &BTreeMap<String, String>) -> Arc<FrontProxy> {
    Arc::new(FrontProxy::new(data).unwrap())
}

fn timing() -> Timing {
    let short = Duration::from_millis(20);
    Timing {
        poll: (short, short),
        recheck: Duration::from_millis(50),
        pause: short,
        patience: Duration::from_secs(2),
        answer: Duration::from_secs(3),
        first: Duration::from_millis(50),
    }
}

impl TestServer {
    /// A server on which `ann` may read in namespace `ns`.
    pub(super) async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub(super) async fn start_with(limits: Limits) -> Self {
        let archive = FakeArchive::new();
        let source = Source::Archive {
            archive: Arc::new(archive.clone()),
            behind_front: false,
        };
        Self::start_from(limits, source, archive).await
    }

    /// A front of the server at this port, which it knows by the files in this folder.
    pub(super) async fn start_front(port: u16, folder: &Path) -> Self {
        let source = Source::Upstream(Box::new(Upstream::at(port, folder)));
        Self::start_from(Limits::default(), source, FakeArchive::new()).await
    }

    /// A server behind a front, which has a certificate of this authority, as it has itself.
    pub(super) async fn start_reader(ca: Authority, folder: &Path) -> Self {
        ca.write(folder, "localhost", Kind::ServerOnly);
        let serving = Serving::from_files(Files {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        });
        let tls = (serving.await.unwrap(), ca.der());
        let archive = FakeArchive::new();
        let source = Source::Archive {
            archive: Arc::new(archive.clone()),
            behind_front: true,
        };
        let proxy = Arc::new(FrontProxy::ours(&ca.pem()).unwrap());
        Self::serve(Limits::default(), source, archive, (ca, proxy), tls).await
    }

    async fn start_from(limits: Limits, source: Source, archive: FakeArchive) -> Self {
        let ca = Authority::new("request header CA");
        let proxy = front_proxy(&config_map(&ca));
        let serving = Serving::self_made(&["localhost".to_owned()]).unwrap();
        let root = serving.certificate();
        Self::serve(limits, source, archive, (ca, proxy), (serving, root)).await
    }

    async fn serve(
        limits: Limits,
        source: Source,
        archive: FakeArchive,
        (ca, proxy): (Authority, Arc<FrontProxy>),
        (serving, root): (Arc<Serving>, CertificateDer<'static>),
    ) -> Self {
        let cluster = Arc::new(FakeCluster::default());
        cluster.allow("ann", "ns");
        let (known, proxy) = watch::channel(Some(proxy));
        let cx = Arc::new(Context {
            cluster: cluster.clone(),
            source,
            access: Access::new(cluster.clone()),
            proxy,
            slots: Slots::new(3, 2),
            metrics: Arc::new(Metrics::new()),
            timing: timing(),
        });
        let (stop, stopped) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            drain: Duration::from_millis(100),
            ..limits
        };
        let tls = tls::config(serving).unwrap();
        tokio::spawn(serve::serve(listener, tls, cx.clone(), stopped, limits));
        Self {
            cluster,
            archive,
            cx,
            ca,
            known,
            stop,
            address,
            root,
        }
    }

    /// The API server's own certificate.
    pub(super) fn proxy(&self) -> Identity {
        self.ca.sign(PROXY, Kind::Client)
    }

    pub(super) async fn connect(&self, identity: Option<Identity>) -> Client {
        Client::connect(self.address, &self.root, identity, false).await
    }

    /// Asks for a path as `ann`, by way of the API server.
    pub(super) async fn get(&self, path: &str) -> Answer {
        let mut client = self.connect(Some(self.proxy())).await;
        client.get(path, &[("X-Remote-User", "ann")]).await
    }

    /// Asks for the log of a Box in `ns` as `ann`.
    pub(super) async fn log(&self, name: &str, query: &str) -> Answer {
        self.get(&log_path("ns", name, query)).await
    }
}

pub(super) fn log_path(namespace: &str, name: &str, query: &str) -> String {
    format!("/apis/output.boxes.run/v1alpha1/namespaces/{namespace}/boxes/{name}/log?{query}")
}
