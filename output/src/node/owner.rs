//! Whether somebody still wants the output of a pod.

use boxes_crds::BoxObject;
use boxes_program::says_absent;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};

use crate::archive::Label;

/// What a live read says about a Box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Wanted,
    /// It, or its namespace, is being deleted.
    Leaving,
    /// There is no such Box: a typed 404, or another one has its name.
    Gone,
}

/// Reads a Box live.
///
/// # Errors
/// The API server does not answer, or does not let us: that says nothing.
pub(crate) async fn owner(client: &Client, label: &Label) -> Result<Owner, kube::Error> {
    let boxes = Api::<BoxObject>::namespaced(client.clone(), &label.namespace);
    let found: PartialObjectMeta<BoxObject> = match boxes.get_metadata(&label.name).await {
        Ok(found) => found,
        Err(error) if says_absent(&error, &label.name) => return Ok(Owner::Gone),
        Err(error) => return Err(error),
    };
    if found.uid().as_deref() != Some(label.uid.as_str()) {
        return Ok(Owner::Gone);
    }
    if found.metadata.deletion_timestamp.is_some() || leaving(client, &label.namespace).await? {
        return Ok(Owner::Leaving);
    }
    Ok(Owner::Wanted)
}

async fn leaving(client: &Client, namespace: &str) -> Result<bool, kube::Error> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let found = namespaces.get_metadata(namespace).await?;
    Ok(found.metadata.deletion_timestamp.is_some())
}
