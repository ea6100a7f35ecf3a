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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::context::Context;
use super::handle::handle;

/// How many connections are open at once. The API server needs few.
const CONNECTIONS: usize = 2048;
/// How long a client may take to say who and what.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(30);
/// A user may be in very many groups, each of them a header.
const HEADER_COUNT: usize = 8192;
const HEADER_BYTES: u32 = 1024 * 1024;
/// How long a silent client is taken for alive.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of one answer that wait in an HTTP/2 connection.
const SEND_BUFFER: usize = 128 * 1024;
/// Requests on one HTTP/2 connection. The API server opens another one beyond that.
const REQUESTS: u32 = 200;

/// What every connection shares.
#[derive(Clone)]
struct Shared {
    cx: Arc<Context>,
    acceptor: TlsAcceptor,
}

/// Serves until told to stop; then lets answers end for as long as `drain`.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    cx: Arc<Context>,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let shared = Shared { cx, acceptor };
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            (stream, permit) = accept(&listener, &room) => {
                open.spawn(connection(shared.clone(), stream, graceful.watcher(), permit));
            }
            Some(_) = open.join_next() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(listener);
    if timeout(drain, graceful.shutdown()).await.is_err() {
        // By dropping their connections.
        tracing::info!("answers that did not end in time are cut off");
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let permit = room.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(
    shared: Shared,
    stream: TcpStream,
    watcher: Watcher,
    _permit: Option<OwnedSemaphorePermit>,
) {
    if let Err(error) = speak(shared, stream, watcher).await {
        tracing::debug!(error, "a connection ended");
    }
}

async fn speak(shared: Shared, stream: TcpStream, watcher: Watcher) -> Result<(), String> {
    prepare(&stream).map_err(|error| error.to_string())?;
    let stream = timeout(HANDSHAKE, shared.acceptor.accept(stream))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let certificates: Arc<[CertificateDer<'static>]> = shown.into();
    let service = service_fn(move |request: Request<Incoming>| {
        let (cx, certificates) = (shared.cx.clone(), certificates.clone());
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
fn prepare(stream: &TcpStream) -> io::Result<()> {
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
