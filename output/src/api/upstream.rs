//! The server that has the archive, as a front reaches it.
//!
//! Each request has a connection of its own: none is found to be dead when it is needed, replicas take
//! turns, and whoever goes away takes it along. A replica that cannot be connected to is passed over. It is HTTP/2, whose limits on headers are those that the
//! API server's own requests have. The files are read for each, so that a front starts without them,
//! and new ones count at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificate::{Files, read};
use super::cluster::Cluster;
use super::endpoints::Service;
use super::serve::{SILENCE, prepare};
use super::tls::{provider, roots};

/// How long one replica may take until a connection to it can be used.
const REPLICA: Duration = Duration::from_secs(2);
/// How long it may take in all.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin: longer than a reader takes in all for the cluster and for its
/// archive, so that it tells by itself what is wrong.
const ANSWER: Duration = Duration::from_mins(2);
/// Bytes of one answer that wait here for the client.
const WINDOW: u32 = 128 * 1024;

/// Another server that has the archive.
#[derive(Clone, Debug, Args)]
pub(crate) struct Upstream {
    /// Do not open an archive: send reads to the server at this URL, <https://host:port>, which is
    /// started with --front-ca.
    #[arg(
        long = "reader",
        value_name = "URL",
        required = false,
        requires_all = ["ca", "certificate", "key"]
    )]
    place: Place,

    /// File of the authority that signed its certificate, PEM.
    #[arg(
        long = "reader-ca",
        value_name = "FILE",
        required = false,
        requires = "place"
    )]
    ca: PathBuf,

    /// File of the certificate that it knows this server by, PEM.
    #[arg(
        long = "reader-cert",
        value_name = "FILE",
        required = false,
        requires = "place"
    )]
    certificate: PathBuf,

    /// File of that certificate's key, PEM.
    #[arg(
        long = "reader-key",
        value_name = "FILE",
        required = false,
        requires = "place"
    )]
    key: PathBuf,

    /// How often it was asked.
    #[arg(skip)]
    turn: Arc<AtomicUsize>,
}

/// Where it is, and the name that its certificate is for.
#[derive(Clone, Debug)]
struct Place {
    uri: Uri,
    host: String,
    port: u16,
    name: ServerName<'static>,
    /// If it is one of the cluster.
    service: Option<Service>,
}

/// An answer, and what keeps its connection open.
pub(crate) type Answered = (Response<Incoming>, SendRequest<Empty<Bytes>>);

impl Upstream {
    /// Asks for this path with these headers.
    pub(crate) async fn get(
        &self,
        cluster: &dyn Cluster,
        path: PathAndQuery,
        headers: HeaderMap,
    ) -> anyhow::Result<Answered> {
        let request = self.request(path, headers)?;
        let connected = timeout(CONNECT, self.connect(cluster)).await;
        let mut connection = connected.context("no connection in time")??;
        let answer = timeout(ANSWER, connection.send_request(request)).await;
        Ok((answer.context("no answer in time")??, connection))
    }

    fn request(
        &self,
        path: PathAndQuery,
        headers: HeaderMap,
    ) -> anyhow::Result<Request<Empty<Bytes>>> {
        let mut uri = self.place.uri.clone().into_parts();
        uri.path_and_query = Some(path);
        let mut request = Request::get(Uri::from_parts(uri)?).body(Empty::new())?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// To the first replica that takes it; those that went without a word are not waited for.
    async fn connect(&self, cluster: &dyn Cluster) -> anyhow::Result<SendRequest<Empty<Bytes>>> {
        let mut problem = anyhow::anyhow!("it has no replica that is ready");
        for address in self.addresses(cluster).await? {
            match timeout(REPLICA, self.connect_to(address)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => problem = error,
                Err(_) => problem = anyhow::anyhow!("{address} does not answer"),
            }
        }
        Err(problem)
    }

    /// Where it is, beginning with another one each time.
    async fn addresses(&self, cluster: &dyn Cluster) -> anyhow::Result<Vec<SocketAddr>> {
        let Place {
            host,
            port,
            service,
            ..
        } = &self.place;
        let mut all = match service {
            Some(service) => cluster.addresses(service).await?,
            None => lookup_host((host.as_str(), *port)).await?.collect(),
        };
        if !all.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % all.len();
            all.rotate_left(turn);
        }
        Ok(all)
    }

    async fn connect_to(&self, address: SocketAddr) -> anyhow::Result<SendRequest<Empty<Bytes>>> {
        let stream = TokioIo::new(self.secure(address).await?);
        let (send, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await?;
        // What ends it is seen by whoever reads the answer.
        tokio::spawn(connection);
        Ok(send)
    }

    async fn secure(&self, address: SocketAddr) -> anyhow::Result<TlsStream<TcpStream>> {
        let config = Arc::new(self.config().await?);
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        let connected = TlsConnector::from(config).connect(self.place.name.clone(), stream);
        Ok(connected.await?)
    }

    async fn config(&self) -> anyhow::Result<ClientConfig> {
        let ca = roots(&read(&self.ca).await?)
            .map_err(anyhow::Error::msg)
            .context("the reader's authority")?;
        let files = Files {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        };
        let (chain, key) = files.parsed().await?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(ca)
            .with_client_auth_cert(chain, key)
            .context("the certificate for the reader")?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

#[cfg(test)]
impl Upstream {
    /// That of tests: the three files lie in one folder.
    pub(crate) fn at(port: u16, folder: &std::path::Path) -> Self {
        Self {
            place: format!("https://localhost:{port}").parse().unwrap(),
            ca: folder.join("ca.crt"),
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            turn: Arc::default(),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be https://host:port".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if uri.scheme() != Some(&Scheme::HTTPS) || !plain {
            return Err(wrong());
        }
        let host = uri.host().ok_or_else(wrong)?.to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| wrong())?;
        let port = uri.port_u16().unwrap_or(443);
        Ok(Self {
            uri,
            service: Service::of_host(&host),
            host,
            port,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeCluster;
    use super::super::test_certificates::{Authority, Kind};
    use super::*;

    #[rstest::rstest]
    #[case("https://reader.ns.svc:8443", Some(8443))]
    #[case("https://reader.ns.svc", Some(443))]
    #[case("https://reader.ns.svc/", Some(443))]
    #[case("http://reader.ns.svc", None)]
    #[case("https://reader.ns.svc/path", None)]
    #[case("https://reader.ns.svc?query", None)]
    #[case("https://", None)]
    #[case("reader.ns.svc:8443", None)]
    fn it_is_at_a_host_and_a_port(#[case] url: &str, #[case] port: Option<u16>) {
        let place = url.parse::<Place>().ok();
        assert_eq!(place.map(|place| place.port), port);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        Authority::new("reader CA").write(folder.path(), "front", Kind::Client);
        let upstream = Upstream::at(silent.local_addr().unwrap().port(), folder.path());
        let cluster = FakeCluster::default();
        let asked = upstream.get(&cluster, PathAndQuery::from_static("/"), HeaderMap::new());
        let error = asked.await.unwrap_err().to_string();
        assert!(
            error.contains("does not answer") || error == "no connection in time",
            "{error}"
        );
    }

    #[tokio::test]
    async fn the_replicas_of_a_service_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let mut upstream = Upstream::at(1, folder.path());
        upstream.place = "https://reader.ns.svc:1".parse().unwrap();
        let cluster = FakeCluster::default();
        let none = upstream.connect(&cluster).await.unwrap_err().to_string();
        assert_eq!(none, "it has no replica that is ready");
        let two: [SocketAddr; 2] = ["10.0.0.1:8443", "10.0.0.2:8443"].map(|it| it.parse().unwrap());
        cluster.addresses.lock().unwrap().extend(two);
        let first = upstream.addresses(&cluster).await.unwrap();
        let second = upstream.addresses(&cluster).await.unwrap();
        assert_eq!((first.len(), second.len()), (2, 2));
        assert_ne!(first, second);
    }

    #[test]
    fn a_path_is_asked_for_where_it_is() {
        let upstream = Upstream::at(1, std::path::Path::new(""));
        let path = PathAndQuery::from_static("/a?b=c");
        let request = upstream.request(path, HeaderMap::new()).unwrap();
        assert_eq!(request.uri(), "https://localhost:1/a?b=c");
    }
}
