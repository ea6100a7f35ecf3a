//! `/livez`, `/readyz` and `/metrics`, without TLS, on a port of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::context::Context;

/// What the answers depend on.
#[derive(Clone)]
pub(crate) struct Health {
    pub(crate) cx: Arc<Context>,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Health {
    /// Ready once users can be authenticated, whatever the archive does: an `APIService` without a
    /// ready server blocks the deletion of every namespace.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if *self.stopping.borrow() {
            Some("stopping")
        } else if self.cx.proxy.borrow().is_none() {
            Some("waiting for the authentication ConfigMap")
        } else {
            None
        }
    }
}

/// Opens the address and serves in the background; says at which address that is.
pub(crate) async fn serve(listen: SocketAddr, health: Health) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another --health-listen"))?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, routes(health)).await });
    Ok(address)
}

fn routes(health: Health) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn readyz(State(health): State<Health>) -> Response {
    match health.problem() {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    match health.cx.metrics.text(health.cx.slots.taken()) {
        Ok(text) => {
            let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, type_)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
