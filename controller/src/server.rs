//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::context::Context;

/// Opens the address and serves in the background.
pub(crate) async fn serve(listen: SocketAddr, cx: Arc<Context>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another --listen"))?;
    let routes = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(cx);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
}

async fn readyz(State(cx): State<Arc<Context>>) -> Response {
    if cx.ready.load(Ordering::Relaxed) {
        "ok".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "waiting for the lease or the first lists",
        )
            .into_response()
    }
}

async fn metrics(State(cx): State<Arc<Context>>) -> Response {
    match cx.metrics.text(&cx.boxes) {
        Ok(text) => {
            let type_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, type_)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
