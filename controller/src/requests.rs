//! Requests that write. Of the object in the answer only the version is read: the watch brings it whole.

use boxes_lifecycle::BoxView;
use http::Request as HttpRequest;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::core::request::{Error as RequestError, Request};
use kube::{Client, Resource};
use serde::{Deserialize, Serialize};

use crate::context::MANAGER;

/// An object to write to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> Target<'a> {
    /// A Box.
    pub(crate) fn of(object: &'a BoxView) -> Self {
        Self {
            namespace: object.namespace(),
            name: object.name(),
        }
    }
}

/// A kind of objects in namespaces.
pub(crate) trait Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> {}

impl<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>> Kind for K {}

fn all<K: Kind>(namespace: &str) -> Request {
    Request::new(K::url_path(&(), Some(namespace)))
}

/// Merges a patch into an object. Gives the version that it then has.
pub(crate) async fn merge<K: Kind>(
    client: &Client,
    object: Target<'_>,
    patch: &impl Serialize,
) -> kube::Result<Option<u64>> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(patch);
    written(
        client,
        all::<K>(object.namespace).patch(object.name, &params, &patch),
    )
    .await
}

/// Applies a whole status. Gives the version that its object then has.
pub(crate) async fn apply_status<K: Kind>(
    client: &Client,
    object: Target<'_>,
    status: &impl Serialize,
) -> kube::Result<Option<u64>> {
    let params = PatchParams::apply(MANAGER).force();
    let patch = Patch::Apply(status);
    let request = all::<K>(object.namespace);
    written(
        client,
        request.patch_subresource("status", object.name, &params, &patch),
    )
    .await
}

/// Creates an object. Gives its version.
pub(crate) async fn create<K: Kind + Serialize>(
    client: &Client,
    namespace: &str,
    object: &K,
) -> kube::Result<Option<u64>> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    written(
        client,
        all::<K>(namespace).create(&PostParams::default(), body),
    )
    .await
}

/// Deletes an object.
pub(crate) async fn delete<K: Kind>(
    client: &Client,
    object: Target<'_>,
    params: &DeleteParams,
) -> kube::Result<()> {
    let request = all::<K>(object.namespace).delete(object.name, params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(drop)
}

async fn written(
    client: &Client,
    request: Result<HttpRequest<Vec<u8>>, RequestError>,
) -> kube::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct Written {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: Option<String>,
    }
    let request = request.map_err(kube::Error::BuildRequest)?;
    let written: Written = client.request(request).await?;
    let version = written.metadata.resource_version;
    Ok(version.and_then(|version| version.parse().ok()))
}
