//! Connections: TLS, HTTP/1.1 and HTTP/2, and their end.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::context::Context;
use super::handle::handle;
use super::handshakes::Handshakes;

/// A client that has begun a request may take so long to finish its head.
const HEADERS: Duration = Duration::from_secs(30);
/// A user may be in very many groups, each of them a header.
const HEADER_COUNT: usize = 8192;
const HEADER_BYTES: u32 = 1024 * 1024;
/// How long a silent client is taken for alive.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of one answer that wait in an HTTP/2 connection.
const SEND_BUFFER: usize = 128 * 1024;
/// Requests on one HTTP/2 connection. The API server opens another one beyond that.
const REQUESTS: u32 = 200;

/// How much of everything there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Clients that have not said yet who they are.
    pub(crate) handshakes: usize,
    /// Connections of the server in front: the API server needs few, and a front one for each read.
    pub(crate) connections: usize,
    /// Connections without its certificate: they are told that they are nobody.
    pub(crate) strangers: usize,
    /// How long one of these may last.
    pub(crate) stranger: Duration,
    /// For answers to end, when the server is to stop.
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes: 512,
            connections: 2048,
            strangers: 64,
            stranger: Duration::from_secs(10),
            drain: Duration::from_secs(15),
        }
    }
}

/// Where connections are served.
struct House {
    cx: Arc<Context>,
    limits: Limits,
    known: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

/// Serves until told to stop; then lets answers end for a while.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    cx: Arc<Context>,
    mut stop: watch::Receiver<bool>,
    limits: Limits,
) {
    let mut handshakes = Handshakes::new(TlsAcceptor::from(Arc::new(tls)), limits.handshakes);
    let house = House::new(cx, limits);
    let graceful = GracefulShutdown::new();
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            stream = accept(&listener) => handshakes.begin(stream),
            Some(stream) = handshakes.next() => {
                if let Some(connection) = house.enter(stream, graceful.watcher()) {
                    open.spawn(connection);
                }
            }
            Some(_) = open.join_next() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(listener);
    if timeout(limits.drain, graceful.shutdown()).await.is_err() {
        // By dropping their connections.
        tracing::info!("answers that did not end in time are cut off");
    }
}

/// The next connection.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(stream, _)| prepare(&stream).map(|()| stream)) {
            Ok(stream) => return stream,
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl House {
    fn new(cx: Arc<Context>, limits: Limits) -> Self {
        Self {
            cx,
            limits,
            known: Arc::new(Semaphore::new(limits.connections)),
            strangers: Arc::new(Semaphore::new(limits.strangers)),
        }
    }

    /// Serves a connection; `None` if there is no room for it, and then it is closed. Strangers take
    /// no room from the API server, and leave soon.
    fn enter(
        &self,
        stream: TlsStream<TcpStream>,
        watcher: Watcher,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates: Arc<[CertificateDer<'static>]> = shown.into();
        let (room, longest) = if self.cx.knows(&certificates) {
            (&self.known, Duration::MAX)
        } else {
            (&self.strangers, self.limits.stranger)
        };
        let permit = room.clone().try_acquire_owned().ok()?;
        let speaking = speak(self.cx.clone(), stream, certificates, watcher);
        Some(async move {
            let _permit = permit;
            if let Ok(Err(error)) = timeout(longest, speaking).await {
                tracing::debug!(error, "a connection ended");
            }
        })
    }
}

async fn speak(
    cx: Arc<Context>,
    stream: TlsStream<TcpStream>,
    certificates: Arc<[CertificateDer<'static>]>,
    watcher: Watcher,
) -> Result<(), String> {
    let service = service_fn(move |request: Request<Incoming>| {
        let (cx, certificates) = (cx.clone(), certificates.clone());
        async move {
            let (parts, _) = request.into_parts();
            Ok::<_, Infallible>(handle(&cx, &certificates, &parts).await)
        }
    });
    let builder = builder();
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let done = watcher.watch(connection.into_owned()).await;
    done.map_err(|error| error.to_string())
}

/// Lines are sent at once, and a peer that vanished without a word is noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .max_headers(HEADER_COUNT)
        .header_read_timeout(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE)
        .max_header_list_size(HEADER_BYTES)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(REQUESTS);
    builder
}
