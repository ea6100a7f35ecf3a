//! A registry on loopback, to be pulled from only: the part of the OCI distribution API that
//! containerd uses.
//!
//! containerd asks it for every image, whatever the name, and adds the name's host as `ns`. A host on
//! loopback is sent on to where it says, so that a closed port there is what it is to any user.

use std::path::PathBuf;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};

use super::address::{LOOPBACK, REGISTRY_PORT};
use super::archive::MANIFEST;
use super::layout::Layout;
use super::process::Component;
use super::reference::Reference;
use super::store::Store;

/// The header by which a registry names what it serves.
const DIGEST: &str = "docker-content-digest";

/// The registry as a program to start: `program` with its sub-command.
pub(crate) fn component(layout: &Layout, program: PathBuf) -> Component {
    Component {
        name: "registry",
        program,
        arguments: vec!["registry".into(), layout.registry().display().to_string()],
    }
}

/// Serves the images in `folder` until the process ends.
///
/// # Errors
/// When the port is taken.
pub async fn serve(folder: PathBuf) -> Result<()> {
    let address = (LOOPBACK, REGISTRY_PORT);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {LOOPBACK}:{REGISTRY_PORT}"))?;
    axum::serve(listener, router(Store::new(folder)))
        .await
        .context("the registry's server ended")
}

fn router(store: Store) -> Router {
    Router::new()
        .route("/v2/", get(|| async { "{}" }))
        .route("/v2/{*path}", get(pull))
        .with_state(store)
}

/// What containerd adds to a path.
#[derive(Deserialize)]
struct Origin {
    /// The host in the image's name.
    ns: Option<String>,
}

async fn pull(
    State(store): State<Store>,
    Path(path): Path<String>,
    Query(origin): Query<Origin>,
    headers: HeaderMap,
) -> Response {
    let own = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let host = origin.ns.as_deref().unwrap_or(own);
    if host != own && is_loopback(host) {
        return Redirect::temporary(&format!("http://{host}/v2/{path}")).into_response();
    }
    answer(&store, host, &path).unwrap_or_else(|| missing(host, &path))
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let address = name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn answer(store: &Store, host: &str, path: &str) -> Option<Response> {
    if let Some((_, digest)) = path.rsplit_once("/blobs/") {
        return Some(content(
            "application/octet-stream",
            digest,
            store.blob(digest)?,
        ));
    }
    let (repository, wanted) = path.rsplit_once("/manifests/")?;
    let digest = if wanted.starts_with("sha256:") {
        wanted.to_owned()
    } else {
        let (host, repository) = (host.to_owned(), repository.to_owned());
        store.resolve(&Reference {
            host,
            repository,
            tag: wanted.to_owned(),
        })?
    };
    let bytes = store.blob(&digest)?;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    let media_type = manifest
        .get("mediaType")
        .and_then(Value::as_str)
        .unwrap_or(MANIFEST);
    Some(content(media_type, &digest, bytes))
}

fn content(media_type: &str, digest: &str, bytes: Vec<u8>) -> Response {
    let length = bytes.len().to_string();
    let headers = [
        (header::CONTENT_TYPE.as_str(), media_type),
        (DIGEST, digest),
        (header::CONTENT_LENGTH.as_str(), &length),
    ];
    (headers, Body::from(bytes)).into_response()
}

fn missing(host: &str, path: &str) -> Response {
    let message = format!("{host}/{path} is not in the test cluster's registry: import it first");
    let errors = json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": message}]});
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::NOT_FOUND, content_type, errors.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["127.0.0.1:1", "127.3.2.1", "localhost:5000", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "docker.io",
            "registry.example:5000",
            "128.0.0.1:1",
            "localhost.example",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let store = Store::new(PathBuf::from("/nonexistent"));
        assert!(answer(&store, "docker.io", "library/nope/manifests/latest").is_none());
        assert!(answer(&store, "docker.io", "library/nope").is_none());
        assert_eq!(missing("docker.io", "x").status(), StatusCode::NOT_FOUND);
    }
}
