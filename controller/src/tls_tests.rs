//! A receiver over https is known by the certificates of a file, and by nothing else.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::otlp::Receiver;
use crate::tracing_tests::{Collector, a_trace, counted, start};

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, from) = self.tcp.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

fn acceptor(identity: &CertifiedKey<KeyPair>) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A PEM file of a certificate, removed with the value.
struct Pem(PathBuf);

impl Pem {
    fn of(name: &str, identity: &CertifiedKey<KeyPair>) -> Self {
        let file = format!("boxes-{name}-{}.pem", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, identity.cert.pem()).unwrap();
        Self(path)
    }
}

impl Drop for Pem {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn identity() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

/// A receiver of that identity; whoever sends to it trusts the file.
async fn serve(identity: &CertifiedKey<KeyPair>, trusted: &Path) -> (Collector, Receiver) {
    let collector = Collector::default();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let listener = Tls {
        tcp,
        acceptor: acceptor(identity),
    };
    let routes = collector.routes();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let receiver = Receiver {
        endpoint: format!("https://localhost:{port}/v1/traces")
            .parse()
            .unwrap(),
        timeout: Duration::from_secs(10),
        certificates: Some(trusted.to_owned()),
    };
    (collector, receiver)
}

#[tokio::test]
async fn a_receiver_with_a_trusted_certificate_gets_traces() {
    let identity = identity();
    let file = Pem::of("trusted", &identity);
    let (collector, receiver) = serve(&identity, &file.0).await;
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (1, 0));
    assert_eq!(collector.requests().len(), 1);
}

#[tokio::test]
async fn one_with_another_certificate_gets_none() {
    let another = identity();
    let file = Pem::of("another", &another);
    let (collector, receiver) = serve(&identity(), &file.0).await;
    let (traces, counts) = start(&receiver);
    traces.send(|| Some(a_trace()));
    assert_eq!(counted(&counts, 1).await, (0, 1));
    assert!(collector.requests().is_empty());
}
