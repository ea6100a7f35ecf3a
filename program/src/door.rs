//! The connections of probes and scrapers. Any pod of the cluster may open some: they are few, small and
//! short, and a new one takes the place of the oldest.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How many connections there may be. Those who probe need one for a moment.
pub(crate) const OPEN: usize = 64;
/// How long one may last.
const LONGEST: Duration = Duration::from_secs(10);
/// How long the head of a request may be, in bytes.
pub(crate) const HEAD: usize = 16 << 10;
/// Before a connection is accepted again after one could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves for ever.
pub(crate) async fn serve(listener: TcpListener, routes: Router) {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.retain(|connection| !connection.is_finished());
                if open.len() >= OPEN
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                open.push_back(tokio::spawn(speak(stream, routes.clone())));
            }
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn speak(stream: TcpStream, routes: Router) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(LONGEST)
        .max_buf_size(HEAD);
    let service = TowerToHyperService::new(routes);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // Whatever it comes to, it is over.
    let _ = timeout(LONGEST, connection).await;
}
