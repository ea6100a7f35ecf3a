//! Plain requests to the API server: what is sent often is sent as bytes.

use anyhow::{Context, Result};
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The path of the Boxes of a namespace.
pub(super) fn boxes_in(namespace: &str) -> String {
    format!("/apis/boxes.run/v1alpha1/namespaces/{namespace}/boxes")
}

/// The path of a namespace's objects of a core kind, such as `pods`.
pub(super) fn core_in(namespace: &str, resource: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{resource}")
}

/// The path of the cluster's objects of a core kind, such as `nodes`.
pub(super) fn core(resource: &str) -> String {
    format!("/api/v1/{resource}")
}

/// Makes an object.
pub(super) async fn create(client: &Client, path: &str, object: &Value) -> Result<Value> {
    send(client, "POST", path, "application/json", object).await
}

/// Changes an object by a merge patch.
pub(super) async fn patch(client: &Client, path: &str, change: &Value) -> Result<Value> {
    send(
        client,
        "PATCH",
        path,
        "application/merge-patch+json",
        change,
    )
    .await
}

/// Deletes an object, or all that a path names.
pub(super) async fn delete(client: &Client, path: &str, options: &Value) -> Result<Value> {
    send(client, "DELETE", path, "application/json", options).await
}

/// Reads an object or a list.
pub(super) async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    let request = http::Request::get(path).body(Vec::new())?;
    let answer = client.request(request).await;
    answer.with_context(|| format!("GET {path}"))
}

/// Whether the API server said that there is no such object.
pub(super) fn is_absent(error: &anyhow::Error) -> bool {
    code(error) == Some(404)
}

/// Whether the API server said that there is one already.
pub(super) fn exists(error: &anyhow::Error) -> bool {
    code(error) == Some(409)
}

fn code(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<Value> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(serde_json::to_vec(body)?)?;
    let answer = client.request(request).await;
    answer.with_context(|| format!("{method} {path}"))
}
