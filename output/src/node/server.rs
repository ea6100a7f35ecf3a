//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::collector::Stats;

/// What the answers depend on.
#[derive(Debug, Default)]
pub(crate) struct Health {
    ready: AtomicBool,
    foreign: AtomicBool,
    stats: OnceLock<Arc<Stats>>,
}

impl Health {
    /// The collector has begun, and counts here.
    pub(crate) fn begin(&self, stats: Arc<Stats>) {
        // It begins once.
        let _ = self.stats.set(stats);
    }

    /// It holds the files of all boxes of its node.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Whether the archive is another cluster's.
    pub(crate) fn set_foreign(&self, foreign: bool) {
        self.foreign.store(foreign, Ordering::Relaxed);
    }

    /// Why it is not ready. An archive that does not answer is no reason; one that is not ours is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.foreign.load(Ordering::Relaxed) {
            Some("the archive belongs to another cluster")
        } else if self.ready.load(Ordering::Relaxed) {
            None
        } else {
            Some("waiting for the first list of pods, and for their files to be opened")
        }
    }
}

/// Opens the address and serves in the background.
pub(crate) async fn serve(listen: SocketAddr, health: Arc<Health>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another --listen"))?;
    let routes = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(health);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
}

async fn readyz(State(health): State<Arc<Health>>) -> Response {
    match health.problem() {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

async fn metrics(State(health): State<Arc<Health>>) -> Response {
    match health.stats.get().map(|stats| stats.text()) {
        Some(Ok(text)) => {
            let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, type_)], text).into_response()
        }
        Some(Err(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
