//! A client for tests: one connection, HTTP/1.1 or HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::test_certificates::Identity;
use super::super::tls::provider;

/// How long anything may take in a test.
const SOON: Duration = Duration::from_secs(30);

pub(super) enum Client {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    pub(super) code: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) trailers: HeaderMap,
    body: Incoming,
}

/// A connection on which nothing was said yet.
pub(super) async fn open(
    address: SocketAddr,
    root: &CertificateDer<'static>,
    identity: Option<Identity>,
    two: bool,
) -> io::Result<TlsStream<TcpStream>> {
    let mut config = tls(root, identity);
    let protocol: &[u8] = if two { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await
}

impl Client {
    pub(super) async fn connect(
        address: SocketAddr,
        root: &CertificateDer<'static>,
        identity: Option<Identity>,
        two: bool,
    ) -> Self {
        let stream = TokioIo::new(open(address, root, identity, two).await.unwrap());
        if two {
            let (send, connection) = http2::handshake(TokioExecutor::new(), stream)
                .await
                .unwrap();
            tokio::spawn(connection);
            Self::Two(send)
        } else {
            let (send, connection) = http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            Self::One(send)
        }
    }

    pub(super) async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, headers).await
    }

    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.uri(match self {
            Self::One(_) => path.to_owned(),
            Self::Two(_) => format!("https://localhost{path}"),
        });
        let request = request.body(Empty::new()).unwrap();
        let response = tokio::time::timeout(SOON, async {
            match self {
                Self::One(send) => send.send_request(request).await.unwrap(),
                Self::Two(send) => send.send_request(request).await.unwrap(),
            }
        });
        let (parts, body) = response.await.expect("an answer in time").into_parts();
        Answer {
            code: parts.status,
            headers: parts.headers,
            trailers: HeaderMap::new(),
            body,
        }
    }
}

impl Answer {
    /// Everything; panics if it is cut off.
    pub(super) async fn bytes(&mut self) -> Vec<u8> {
        let (bytes, whole) = self.rest().await;
        assert!(whole, "cut off after {} bytes", bytes.len());
        bytes
    }

    /// Everything, and whether it came to a proper end.
    pub(super) async fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        loop {
            let frame = tokio::time::timeout(SOON, self.body.frame())
                .await
                .expect("a frame in time");
            match frame {
                None => return (bytes, true),
                Some(Err(_)) => return (bytes, false),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => bytes.extend_from_slice(&data),
                    Err(frame) => self.trailers = frame.into_trailers().unwrap(),
                },
            }
        }
    }

    pub(super) async fn text(&mut self) -> String {
        String::from_utf8(self.bytes().await).unwrap()
    }

    pub(super) async fn json(&mut self) -> Value {
        serde_json::from_slice(&self.bytes().await).unwrap()
    }

    /// The next piece, if one comes before long.
    pub(super) async fn piece(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(SOON, self.body.frame()).await.ok()??;
        frame.ok()?.into_data().ok()
    }

    /// A header or, after the end, a trailer.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let value = self.trailers.get(name).or_else(|| self.headers.get(name))?;
        value.to_str().ok()
    }
}

fn tls(root: &CertificateDer<'static>, identity: Option<Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        Some(Identity { chain, key }) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    }
}
