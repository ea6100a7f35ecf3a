//! A registry on loopback that answers nothing until it is told to. Its image is busybox.
//!
//! Assumption: the node's container runtime is on this machine, as that of the test cluster is.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cluster::archive::MANIFEST;
use crate::images;

/// The registry. It is gone when this is dropped.
pub struct SlowRegistry {
    image: String,
    open: watch::Sender<bool>,
    _server: JoinSet<()>,
}

#[derive(Clone)]
struct Content {
    open: watch::Receiver<bool>,
    manifest: String,
    blobs: Arc<BTreeMap<String, Vec<u8>>>,
}

impl SlowRegistry {
    /// Accepts connections, and is silent.
    ///
    /// # Errors
    /// When there is no port, or no busybox to make an image of.
    pub async fn silent() -> Result<Self> {
        let archive = images::busybox()?.archive()?;
        let (_, manifest) = archive.images.first().context("an archive of nothing")?;
        let (open, opened) = watch::channel(false);
        let content = Content {
            open: opened,
            manifest: manifest.digest.clone(),
            blobs: Arc::new(archive.blobs),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let image = format!("127.0.0.1:{}/slow:1", listener.local_addr()?.port());
        let router = Router::new()
            .route("/v2/{*path}", get(answer))
            .with_state(content);
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It serves until it is dropped.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            image,
            open,
            _server: server,
        })
    }

    /// The name of its image.
    #[must_use]
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Answers from now on, also what was asked before.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn answer(State(mut content): State<Content>, Path(path): Path<String>) -> Response {
    if content.open.wait_for(|open| *open).await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let (type_, digest) = if last.starts_with("sha256:") && last != content.manifest {
        ("application/octet-stream", last.to_owned())
    } else {
        (MANIFEST, content.manifest.clone())
    };
    match content.blobs.get(&digest) {
        Some(bytes) => {
            let headers = [
                (header::CONTENT_TYPE.as_str(), type_),
                ("docker-content-digest", digest.as_str()),
            ];
            (headers, bytes.clone()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
