//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::collector::Stats;

/// What the answers depend on.
#[derive(Clone)]
pub(crate) struct Health {
    pub(crate) ready: Arc<AtomicBool>,
    pub(crate) stats: Arc<Stats>,
}

/// Opens the address and serves in the background.
pub(crate) async fn serve(listen: SocketAddr, health: Health) -> anyhow::Result<()> {
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

/// Ready once it holds the files of all boxes of its node, whatever the archive does.
async fn readyz(State(health): State<Health>) -> Response {
    if health.ready.load(Ordering::Relaxed) {
        "ok".into_response()
    } else {
        let waiting = "waiting for the first list of pods";
        (StatusCode::SERVICE_UNAVAILABLE, waiting).into_response()
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    match health.stats.text() {
        Ok(text) => {
            let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, type_)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
