//! kwok, and the nodes that it plays.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::Value;

use super::child::Child;
use super::cluster_access::{core, core_in, create, exists, get, is_absent};
use super::manifest::{Place, a_node};
use super::run::Bench;
use crate::cluster::Cluster;

/// Room for 6,600 pods.
const NODES: usize = 60;
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes the nodes and starts kwok.
pub(super) async fn start(bench: &Bench) -> Result<Child> {
    let program = Cluster::tool("kwok")?;
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/kwok.yaml");
    let arguments = [
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", bench.admin.display()),
        "--v=WARN".to_owned(),
    ];
    let log = bench.folder.join("kwok.log");
    // kwok looks for a configuration of its own in the home folder.
    let variable = ("HOME", bench.folder.as_path());
    let child = Child::start("kwok", &program, &arguments, variable, &log)?;
    stream::iter(0..NODES)
        .map(|number| {
            node(
                &bench.client,
                format!("bench-kwok-{number:02}"),
                Place::Kwok,
            )
        })
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    Ok(child)
}

/// A node that nobody plays.
pub(super) async fn deaf_node(client: &Client) -> Result<()> {
    node(client, "bench-deaf".to_owned(), Place::Deaf).await
}

async fn node(client: &Client, name: String, place: Place) -> Result<()> {
    match create(client, &core("nodes"), &a_node(&name, place)).await {
        Err(error) if !exists(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Waits for the ServiceAccount without which no pod can be made in a namespace.
pub(super) async fn default_account(client: &Client, namespace: &str) -> Result<()> {
    let path = format!("{}/default", core_in(namespace, "serviceaccounts"));
    let began = Instant::now();
    loop {
        match get::<Value>(client, &path).await {
            Err(error) if is_absent(&error) => {}
            other => return other.map(drop),
        }
        if began.elapsed() > PATIENCE {
            bail!("the namespace {namespace} gets no ServiceAccount");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Deletes the nodes of this and of earlier runs.
pub(super) async fn delete_nodes(client: &Client) -> Result<()> {
    let path = format!("{}?labelSelector={}", core("nodes"), super::manifest::LABEL);
    super::cluster_access::delete(client, &path, &serde_json::json!({}))
        .await
        .map(drop)
        .context("cannot delete the nodes")
}
