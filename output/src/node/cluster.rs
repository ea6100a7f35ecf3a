//! Whether the archive is this cluster's.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;

use super::health::Health;
use super::patience::in_time;
use crate::archive::{Archive, Error, Uid};

/// The namespace that every cluster has, and that lives as long as the cluster does.
const NAMESPACE: &str = "kube-system";
/// Between two tries.
const AGAIN: Duration = Duration::from_secs(5);
const SELDOM: Duration = Duration::from_mins(1);

/// What the cluster is known by; however long it takes to find out.
pub(crate) async fn identity(client: &Client) -> Uid {
    loop {
        match read(client).await {
            Ok(uid) => return uid,
            Err(error) => {
                tracing::warn!(error = %error, "which cluster this is cannot be found out; trying again");
            }
        }
        sleep(AGAIN).await;
    }
}

async fn read(client: &Client) -> anyhow::Result<Uid> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let found = in_time(namespaces.get_metadata(NAMESPACE)).await?;
    Ok(Uid::parse(&found.uid().context("it has no UID")?)?)
}

/// Claims the archive, until it answers. One of another cluster is left alone, and that is said.
pub(crate) async fn claim(archive: Archive, health: Arc<Health>) {
    while let Err(error) = archive.claim().await {
        let foreign = matches!(error, Error::Foreign { .. });
        health.set_foreign(foreign);
        if foreign {
            tracing::error!(error = %error, "nothing is collected or deleted: see --archive");
            sleep(SELDOM).await;
        } else {
            tracing::warn!(error = %error, "the archive could not be claimed; trying again");
            sleep(AGAIN).await;
        }
    }
    health.set_foreign(false);
}
