//! One request over a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::test_certificates::Identity;

/// How long anything may take in a test.
const SOON: Duration = Duration::from_secs(10);

/// An answer whose body is still to be read.
pub(crate) struct Answer(Response<Incoming>);

/// Asks over TLS, in the name of this user.
pub(crate) async fn ask(
    address: SocketAddr,
    root: &CertificateDer<'static>,
    identity: Option<Identity>,
    path: &str,
    user: &str,
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = TlsConnector::from(Arc::new(config(root, identity)));
    send(tls.connect(name, stream).await.unwrap(), path, user).await
}

/// Asks without TLS.
pub(crate) async fn ask_plain(address: SocketAddr, path: &str) -> Answer {
    send(TcpStream::connect(address).await.unwrap(), path, "").await
}

async fn send<S>(stream: S, path: &str, user: &str) -> Answer
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", "localhost")
        .header("x-remote-user", user);
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = tokio::time::timeout(SOON, sender.send_request(request));
    Answer(response.await.unwrap().unwrap())
}

impl Answer {
    pub(crate) fn code(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.0.headers()[name].to_str().unwrap().to_owned()
    }

    pub(crate) async fn text(self) -> String {
        let body = self.0.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// What comes, up to the end of this text.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        let mut got = String::new();
        while !got.ends_with(end) {
            let frame = tokio::time::timeout(SOON, self.0.frame()).await;
            let data = frame.unwrap().unwrap().unwrap().into_data().unwrap();
            got += std::str::from_utf8(&data).unwrap();
        }
        got
    }

    /// Whether nothing more comes but a proper end.
    pub(crate) async fn ends_well(mut self) -> bool {
        loop {
            match tokio::time::timeout(SOON, self.0.frame()).await.unwrap() {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => assert!(!frame.is_data()),
            }
        }
    }
}

fn config(root: &CertificateDer<'static>, identity: Option<Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        Some(Identity { chain, key }) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    }
}
