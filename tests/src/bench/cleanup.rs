//! Leaves the cluster as it was.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};

use super::cluster_access::{boxes_in, core, core_in, delete, get, is_absent, patch};
use super::manifest::LABEL;
use super::run::Bench;
use super::{installed, kwok};

/// No end-to-end test takes longer.
const LONGEST_TEST: SignedDuration = SignedDuration::from_mins(5);
/// How long the controller may take to let the Boxes of a namespace go.
const BOXES: Duration = Duration::from_mins(3);
/// How long Kubernetes may take for the rest of a namespace.
const REST: Duration = Duration::from_mins(4);

/// Fails while end-to-end tests run on this cluster: they need the controller that is paused here, and
/// disturb the collector that is measured.
pub(super) async fn nobody_tests(client: &Client) -> Result<()> {
    let all = items(client, &core("namespaces")).await?;
    match all.iter().find(|namespace| is_under_test(namespace)) {
        None => Ok(()),
        Some(namespace) => bail!(
            "end-to-end tests run on this cluster: there is the namespace {}. Wait for them",
            name_of(namespace)
        ),
    }
}

/// An older one was left behind: no test takes so long.
fn is_under_test(namespace: &Value) -> bool {
    let created = namespace.pointer("/metadata/creationTimestamp");
    let created = created
        .and_then(Value::as_str)
        .and_then(|at| at.parse().ok());
    let age = created.map(|at: Timestamp| Timestamp::now().duration_since(at));
    name_of(namespace).starts_with("e2e-") && age.is_some_and(|age| age < LONGEST_TEST)
}

/// Everything. Each step is taken, also after one that failed.
pub(super) async fn all(bench: &mut Bench) -> Result<()> {
    let emptied = namespaces(bench).await;
    let stopped = bench.stop_controller().await;
    let resumed = match bench.installed {
        Some(replicas) => installed::scale(&bench.client, replicas).await,
        None => Ok(()),
    };
    let gone = namespaces_gone(&bench.client).await;
    let quiet = match bench.kwok.take() {
        Some(kwok) => kwok.stop().await,
        None => Ok(()),
    };
    let nodes = kwok::delete_nodes(&bench.client).await;
    let _ = std::fs::remove_file(bench.folder.join("controller.kubeconfig"));
    emptied
        .and(stopped)
        .and(resumed)
        .and(gone)
        .and(quiet)
        .and(nodes)
}

/// Deletes the Boxes in the benchmark's namespaces, and then those without waiting for their end.
pub(super) async fn namespaces(bench: &Bench) -> Result<()> {
    for name in names(&bench.client).await? {
        let let_go = boxes(&bench.client, &name).await;
        if let_go.is_err() {
            release_by_hand(&bench.client, &name).await?;
        }
        let path = format!("{}/{name}", core("namespaces"));
        match delete(&bench.client, &path, &json!({})).await {
            Err(error) if !is_absent(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The namespaces that the benchmark made.
async fn names(client: &Client) -> Result<Vec<String>> {
    let path = format!("{}?labelSelector={LABEL}", core("namespaces"));
    Ok(items(client, &path).await?.iter().map(name_of).collect())
}

/// Deletes the Boxes of a namespace, and returns when the controller has let them go.
pub(super) async fn boxes(client: &Client, namespace: &str) -> Result<()> {
    let path = boxes_in(namespace);
    let began = Instant::now();
    delete(client, &path, &json!({})).await?;
    loop {
        let list: Value = get(client, &format!("{path}?limit=1")).await?;
        if list["items"].as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        if began.elapsed() > BOXES {
            bail!("the boxes of {namespace} do not go");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Takes every finalizer of Boxes and pods away, and ends the pods at once: what is played holds
/// nothing that must be kept.
pub(super) async fn release_by_hand(client: &Client, namespace: &str) -> Result<()> {
    for path in [boxes_in(namespace), core_in(namespace, "pods")] {
        let objects = items(client, &path).await?;
        stream::iter(objects.iter().map(name_of))
            .map(|name| release(client, format!("{path}/{name}")))
            .buffer_unordered(8)
            .try_collect::<()>()
            .await?;
    }
    Ok(())
}

async fn release(client: &Client, path: String) -> Result<()> {
    let at_once = json!({"gracePeriodSeconds": 0});
    let none = json!({"metadata": {"finalizers": null}});
    for answer in [
        delete(client, &path, &at_once).await,
        patch(client, &path, &none).await,
    ] {
        match answer {
            Err(error) if !is_absent(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn namespaces_gone(client: &Client) -> Result<()> {
    let began = Instant::now();
    loop {
        let left = names(client).await?;
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > REST {
            bail!("these namespaces do not go: {}", left.join(", "));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn items(client: &Client, path: &str) -> Result<Vec<Value>> {
    let mut list: Value = get(client, path).await?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Err(anyhow::anyhow!("no list")).context(path.to_owned()),
    }
}

fn name_of(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}
